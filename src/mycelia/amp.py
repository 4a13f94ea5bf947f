"""Mixed precision: the names of ``mindspore.amp``."""

from mycelia.train.amp import (
    DynamicLossScaleManager as DynamicLossScaleManager,
    DynamicLossScaler as DynamicLossScaler,
    FixedLossScaleManager as FixedLossScaleManager,
    LossScaleManager as LossScaleManager,
    LossScaler as LossScaler,
    StaticLossScaler as StaticLossScaler,
    all_finite as all_finite,
    auto_mixed_precision as auto_mixed_precision,
    build_train_network as build_train_network,
    custom_mixed_precision as custom_mixed_precision,
    get_black_list as get_black_list,
    get_white_list as get_white_list,
)
