from flash_attn import flash_attn_func  #: M905


def attend(q, k, v):
    return flash_attn_func(q, k, v)  #: M905
