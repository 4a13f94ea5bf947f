"""Checkpoints: saving parameters to files and loading them, in MindSpore's formats."""

from mycelia.train.checkpoint.net_loading import (
    ParameterMismatchError as ParameterMismatchError,
    load_param_into_net as load_param_into_net,
)
from mycelia.train.checkpoint.serialization import (
    async_ckpt_thread_status as async_ckpt_thread_status,
    load_checkpoint as load_checkpoint,
    load_checkpoint_async as load_checkpoint_async,
    save_checkpoint as save_checkpoint,
)
