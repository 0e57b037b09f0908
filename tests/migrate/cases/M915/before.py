def table(prof):
    return prof.key_averages().table(sort_by="cuda_time_total", row_limit=10)  #: M915
