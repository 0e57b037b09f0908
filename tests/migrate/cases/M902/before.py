from nvidia.dali.pipeline import Pipeline  #: M902


class Train(Pipeline):  #: M902
    pass
