#include "flops/op_classes.h"

#include <array>
#include <unordered_map>

namespace flopledger {
namespace {

struct ClassNames {
  OpClass op_class;
  std::string_view names;  // base names of the namespace aten, separated by white space
};

// Read it as: which class would a person give this op. Composite: it makes a view, allocates, asks
// about a tensor, or calls other ops that are observed themselves. An op that is a kernel in one
// place and a caller in another has the class of the kernel: only its own time counts.
constexpr std::array kTable = {
    ClassNames{OpClass::kComposite, R"(
      adaptive_avg_pool1d adjoint affine_grid_generator affine_grid_generator_backward alias
      align_as align_tensors align_to allclose alpha_dropout as_strided atleast_1d atleast_2d
      atleast_3d avg_pool1d backward batch_norm bilinear broadcast_tensors broadcast_to
      can_cast cartesian_prod cdist chain_matmul channel_shuffle choose_qparams_optimized
      chunk coalesce column_stack combinations concat concatenate conj contiguous conv1d
      conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution
      cosine_embedding_loss cosine_similarity cpu cross_entropy_loss ctc_loss cuda
      cudnn_is_acceptable data dense_dim detach device diag diff dim dropout dsplit dstack
      einsum element_size embedding_bag empty empty_like empty_permuted empty_quantized
      empty_strided expand expand_as feature_alpha_dropout feature_dropout fft_fft fft_fft2
      fft_fftfreq fft_fftn fft_fftshift fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2
      fft_ifftn fft_ifftshift fft_ihfft fft_ihfft2 fft_ihfftn fft_irfft fft_irfft2 fft_irfftn
      fft_rfft fft_rfft2 fft_rfftfreq fft_rfftn flatten flatten_dense_tensors from_file ger
      get_autocast_dtype get_device get_gradients gradient grid_sampler group_norm gru
      gru_cell has_torch_function hinge_embedding_loss hsplit hstack imag
      index_select_backward indices infinitely_differentiable_gelu_backward inner
      instance_norm int_repr inverse is_autocast_cpu_enabled is_autocast_enabled is_coalesced
      is_complex is_conj is_contiguous is_distributed is_floating_point is_grad_enabled
      is_inference is_leaf is_neg is_non_overlapping_and_dense is_nonzero is_pinned
      is_same_size is_set_to is_signed is_strides_like_format is_vulkan_available isclose
      isfinite isreal istft item kron l1_loss layer_norm lift lift_fresh linalg_diagonal
      linalg_matmul linalg_matrix_norm linalg_matrix_power linalg_multi_dot linalg_norm
      linalg_vander linalg_vecdot linear lstm lstm_cell margin_ranking_loss matmul matrix_H
      matrix_power max_pool1d max_pool2d max_pool3d meshgrid mH mkldnn_linear_backward
      moveaxis movedim mT nanmean narrow new_empty new_empty_strided nll_loss nll_loss2d
      nll_loss_nd norm_except_dim numel numpy_T outer output_nr pad pairwise_distance permute
      pin_memory pixel_shuffle pixel_unshuffle poisson_nll_loss positive promote_types
      quantize_per_tensor_dynamic ravel real record_stream refine_names rename requires_grad
      reshape reshape_as resize resize_as resolve_conj resolve_neg result_type retain_grad
      retains_grad rms_norm rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell row_stack
      scaled_dot_product_attention select set set_data set_grad_enabled size slice slow_conv3d
      sparse_coo_tensor sparse_dim sparse_resize sparse_resize_and_clear split
      split_with_sizes squeeze stack stft storage_offset stride sum_to_size swapaxes swapdims
      sym_constrain_range sym_constrain_range_for_size sym_is_contiguous sym_numel sym_size
      sym_storage_offset sym_stride t take_along_dim tensor tensor_split tensordot thnn_conv2d
      tile to to_dense to_dense_backward to_mkldnn to_mkldnn_backward to_padded_tensor
      to_sparse transpose triplet_margin_loss type_as unbind unflatten unflatten_dense_tensors
      unfold unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze values vander view
      view_as view_as_complex view_as_real vsplit vstack _add_batch_dim _assert_async
      _assert_scalar _assert_tensor_metadata _autocast_to_full_precision
      _autocast_to_reduced_precision _backward _batch_norm_impl_index
      _batch_norm_impl_index_backward _cast_Byte _cast_Char _cast_Double _cast_Float
      _cast_Half _cast_Int _cast_Long _cast_Short _coalesced _conj
      _convolution_double_backward _convolution_mode _debug_has_internal_overlap _dimI _dimV
      _efficientzerotensor _euclidean_dist _functional_assert_async _functional_assert_scalar
      _functional_sym_constrain_range _functional_sym_constrain_range_for_size
      _fused_sdp_choice _fw_primal _has_compatible_shallow_copy_type _has_same_storage_numel
      _indices _is_zerotensor _lazy_clone _linalg_check_errors _local_scalar_dense _make_dual
      _neg_view _nested_get_jagged_dummy _nested_get_lengths _nested_get_max_seqlen
      _nested_get_min_seqlen _nested_get_offsets _nested_get_ragged_idx _nested_get_values
      _nested_tensor_size _nested_tensor_storage_offsets _nested_tensor_strides
      _nested_view_from_buffer _nested_view_from_jagged _nnpack_available _nnz
      _pack_padded_sequence _pad_circular _pad_enum _pad_packed_sequence _print
      _remove_batch_dim _reshape_alias _reshape_from_tensor _resize_output
      _scaled_dot_product_attention_math _shape_as_tensor _sparse_coo_tensor_unsafe
      _sparse_coo_tensor_with_dims _sparse_coo_tensor_with_dims_and_tensors _sparse_mm _to_cpu
      _unpack_dual _unsafe_view _use_cudnn_ctc_loss _use_cudnn_rnn_flatten_weight
      _use_miopen_ctc_loss _validate_sparse_coo_tensor_args _values _version _weight_norm)"},
    ClassNames{OpClass::kElementwise, R"(
      abs absolute acos acosh add addcdiv addcmul addr angle arange arccos arccosh arcsin
      arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh bartlett_window
      binary_cross_entropy binary_cross_entropy_with_logits bitwise_and bitwise_left_shift
      bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman_window ceil celu clamp
      clamp_max clamp_min clip complex conj_physical copysign cos cosh cross deg2rad
      dequantize digamma div divide elu eq erf erfc erfinv exp exp2 expm1 eye
      fake_quantize_per_channel_affine fake_quantize_per_channel_affine_cachemask
      fake_quantize_per_channel_affine_cachemask_backward fake_quantize_per_tensor_affine
      fake_quantize_per_tensor_affine_cachemask
      fake_quantize_per_tensor_affine_cachemask_backward fill fill_diagonal fix float_power
      floor floor_divide fmax fmin fmod frac frexp full full_like gcd ge gelu glu
      glu_backward_jvp glu_jvp greater greater_equal gt hamming_window hann_window hardshrink
      hardsigmoid hardswish hardtanh heaviside huber_loss hypot i0 igamma igammac isin isinf
      isnan isneginf isposinf kaiser_window kl_div lcm ldexp le leaky_relu lerp less
      less_equal lgamma linalg_cross linspace log log10 log1p log2 log_sigmoid logaddexp
      logaddexp2 logical_and logical_not logical_or logical_xor logit logspace lt masked_fill
      maximum minimum mish mse_loss mul multiply mvlgamma nan_to_num ne neg negative new_full
      new_ones new_zeros nextafter not_equal ones ones_like polar polygamma pow prelu
      quantize_per_channel quantize_per_tensor rad2deg range reciprocal relu relu6 remainder
      round rrelu_with_noise rsqrt rsub scalar_tensor selu sgn sigmoid sign signbit silu sin
      sinc sinh smooth_l1_loss soft_margin_loss softplus softshrink sqrt square sub subtract
      tan tanh threshold tril tril_indices triu triu_indices true_divide trunc where xlogy
      zero zeros zeros_like _add_relu _amp_foreach_non_finite_check_and_unscale
      _amp_update_scale _conj_physical _fft_c2c _fft_c2r _fft_r2c _fill_mem_eff_dropout_mask
      _masked_scale _new_zeros_with_same_feature_meta _no_grad_fill _no_grad_zero
      _prelu_kernel _thnn_differentiable_gru_cell _thnn_differentiable_lstm_cell
      _thnn_fused_gru_cell _thnn_fused_lstm_cell _thnn_fused_lstm_cell_backward_impl
      _transform_bias_rescale_qkv)"},
    ClassNames{OpClass::kNormalization, R"(
      batch_norm_backward batch_norm_backward_elemt batch_norm_backward_reduce
      batch_norm_elemt batch_norm_gather_stats batch_norm_gather_stats_with_counts
      batch_norm_stats batch_norm_update_stats cudnn_batch_norm log_softmax miopen_batch_norm
      native_batch_norm native_group_norm native_layer_norm native_norm renorm softmax
      _batch_norm_no_update _batch_norm_with_update _batch_norm_with_update_functional
      _fused_rms_norm _log_softmax _masked_softmax _native_batch_norm_legit
      _native_batch_norm_legit_functional _native_batch_norm_legit_no_training
      _nested_tensor_softmax_with_shape _safe_softmax _softmax _sparse_log_softmax
      _sparse_softmax _weight_norm_differentiable _weight_norm_interface)"},
    ClassNames{OpClass::kReduction, R"(
      adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
      adaptive_max_pool3d all amax amin aminmax any argmax argmin avg_pool2d avg_pool3d
      bincount corrcoef count_nonzero cov cummax cummaxmin cummin cumprod cumsum
      cumulative_trapezoid dist equal fractional_max_pool2d fractional_max_pool3d
      frobenius_norm hash_tensor histc histogram histogramdd kthvalue linalg__powsum
      linalg_vector_norm logcumsumexp logsumexp max max_pool1d_with_indices
      max_pool2d_backward max_pool2d_with_indices max_pool3d_with_indices mean median min
      mkldnn_adaptive_avg_pool2d mkldnn_max_pool2d mkldnn_max_pool3d mode multi_margin_loss
      multilabel_margin_loss nanmedian nanquantile nansum nll_loss2d_backward
      nll_loss2d_forward nll_loss_backward nll_loss_forward norm nuclear_norm pdist prod
      quantile segment_reduce std std_mean sum trace trapezoid trapz value_selecting_reduction
      var var_mean _adaptive_avg_pool2d _adaptive_avg_pool3d _aminmax _cdist _ctc_loss
      _cudnn_ctc_loss _cummax_helper _cummin_helper _grad_sum_to_size _histogramdd_bin_edges
      _histogramdd_from_bin_cts _histogramdd_from_bin_tensors _is_all_true _is_any_true
      _logcumsumexp _nested_sum _pdist _segment_reduce _sparse_csr_prod _sparse_csr_sum
      _sparse_sum)"},
    ClassNames{OpClass::kIndexing, R"(
      argsort argwhere bucketize cudnn_affine_grid_generator cudnn_grid_sampler embedding
      embedding_dense embedding_renorm embedding_sparse gather grid_sampler_2d grid_sampler_3d
      index index_add index_copy index_fill index_put index_reduce index_select masked_scatter
      masked_select max_unpool2d max_unpool3d msort nonzero nonzero_numpy nonzero_static
      one_hot put scatter scatter_add scatter_reduce searchsorted sort sparse_mask take topk
      unique_consecutive unique_dim unique_dim_consecutive _coalesce _embedding_bag
      _embedding_bag_dense _embedding_bag_forward_only _embedding_bag_per_sample_weights
      _embedding_bag_sparse _gather_sparse _grid_sampler_2d_cpu_fallback _index_put_impl
      _no_grad_embedding_renorm _to_sparse _unique _unique2 _unsafe_index _unsafe_index_put
      _unsafe_masked_index _unsafe_masked_index_put_accumulate)"},
    ClassNames{OpClass::kRandom, R"(
      bernoulli binomial cauchy exponential geometric log_normal multinomial native_dropout
      normal normal_functional poisson rand rand_like randint randint_like randn randn_like
      random randperm rrelu rrelu_with_noise_functional uniform _cudnn_init_dropout_state
      _dirichlet_grad _fused_dropout _no_grad_normal _no_grad_uniform _philox_key_fold_in
      _philox_key_split _philox_normal _philox_uniform _sample_dirichlet _sobol_engine_draw
      _sobol_engine_ff _sobol_engine_initialize_state _sobol_engine_scramble _standard_gamma
      _standard_gamma_grad)"},
    ClassNames{OpClass::kCopy, R"(
      as_strided_scatter block_diag cat clone col2im constant_pad_nd copy
      copy_sparse_to_sparse diag_embed diagflat diagonal diagonal_scatter flip fliplr flipud
      im2col mkldnn_reorder_conv2d_weight mkldnn_reorder_conv3d_weight native_channel_shuffle
      nested_to_padded_tensor pad_sequence reflection_pad1d reflection_pad2d reflection_pad3d
      repeat repeat_interleave replication_pad1d replication_pad2d replication_pad3d roll
      rot90 select_backward select_scatter slice_backward slice_inverse slice_scatter
      unfold_backward _chunk_cat _copy_from _copy_from_and_resize _cudnn_rnn_flatten_weight
      _jagged_to_padded_dense_forward _mkldnn_reshape _mkldnn_transpose _nested_from_padded
      _nested_from_padded_and_nested_example _nested_from_padded_tensor _nested_select
      _nested_tensor_from_mask _nested_tensor_from_tensor_list _pack_padded_sequence_backward
      _pack_sequence _padded_dense_to_jagged_forward _pin_memory _reshape_copy _stack _to_copy
      _to_dense)"},
};

using ClassByName = std::unordered_map<std::string_view, OpClass>;

const ClassByName& Table() {
  static const ClassByName table = [] {
    ClassByName by_name;
    for (const ClassNames& row : kTable) {
      constexpr std::string_view kSpace = " \n";
      std::size_t begin = row.names.find_first_not_of(kSpace);
      while (begin != std::string_view::npos) {
        const std::size_t end = row.names.find_first_of(kSpace, begin);
        by_name.emplace(row.names.substr(begin, end - begin), row.op_class);
        begin = row.names.find_first_not_of(kSpace, end);
      }
    }
    return by_name;
  }();
  return table;
}

bool RemovePrefix(std::string_view* text, std::string_view prefix) {
  if (text->substr(0, prefix.size()) != prefix) return false;
  text->remove_prefix(prefix.size());
  return true;
}

bool RemoveSuffix(std::string_view* text, std::string_view suffix) {
  if (text->size() <= suffix.size() || text->substr(text->size() - suffix.size()) != suffix) {
    return false;
  }
  text->remove_suffix(suffix.size());
  return true;
}

std::optional<OpClass> Exact(std::string_view name) {
  const auto found = Table().find(name);
  if (found == Table().end()) return std::nullopt;
  return found->second;
}

std::optional<OpClass> Derived(std::string_view name) {
  if (const auto known = Exact(name)) return known;
  std::string_view base = name;
  if (RemoveSuffix(&base, "_")) return Derived(base);
  if (RemoveSuffix(&base, "_copy")) {
    // A view that copies is no view.
    const auto known = Exact(base);
    return known == OpClass::kComposite ? OpClass::kCopy : known;
  }
  for (std::string_view suffix : {"_backward_data", "_double_backward", "_backward_backward",
                                  "_backward", "_forward", "_out"}) {
    base = name;
    if (RemoveSuffix(&base, suffix)) {
      // The gradient of a caller is not always one: `linear_backward` is a kernel on some devices.
      const auto known = Exact(base);
      return known == OpClass::kComposite ? std::nullopt : known;
    }
  }
  return std::nullopt;
}

std::optional<OpClass> ClassifyAten(std::string_view name) {
  if (const auto known = Derived(name)) return known;
  std::string_view base = name;
  if (RemovePrefix(&base, "_foreach_")) {
    if (base == "norm" || base == "max" || base == "powsum") return OpClass::kReduction;
    const auto known = Derived(base);
    return known == OpClass::kComposite ? std::nullopt : known;
  }
  if (RemovePrefix(&base, "_fused_")) {
    for (std::string_view optimizer : {"adam", "adamw", "sgd", "adagrad"}) {
      if (RemoveSuffix(&base, "_"); base == optimizer) return OpClass::kElementwise;
    }
    return std::nullopt;
  }
  if (RemovePrefix(&base, "special_")) return OpClass::kElementwise;
  if (RemovePrefix(&base, "upsample_") || RemovePrefix(&base, "_upsample_")) {
    return OpClass::kIndexing;
  }
  if (RemovePrefix(&base, "__")) return OpClass::kElementwise;  // operators on integers: `__and__`
  return std::nullopt;
}

}  // namespace

std::optional<OpClass> ClassifyName(std::string_view qualified_name) {
  std::string_view name = qualified_name;
  if (RemovePrefix(&name, "aten::")) return ClassifyAten(name);
  for (std::string_view communication :
       {"c10d::", "_c10d_functional::", "_c10d_functional_autograd::", "_dtensor::"}) {
    if (RemovePrefix(&name, communication)) return OpClass::kCommunication;
  }
  for (std::string_view caller : {"autograd::", "profiler::", "flopledger::"}) {
    if (RemovePrefix(&name, caller)) return OpClass::kComposite;
  }
  // Without a namespace: functions of autograd. Those of torch itself that only call ops are known;
  // any other may hide a kernel of its own, and its own time is a gap.
  constexpr std::array kCallers = {
      "detach",
      "detach_",
      "inductor::_mm_plus_mm",
      "CheckpointFunction",
      "_NoopSaveInputs",
      "NoopSaveInputs",
      "BackwardHookFunction",
      "_DDPSink",
      "RegisterPreBackwardFunction",
      "RegisterPostBackwardFunction",
      "PythonDispatchMode",
      "PythonSubclass",
      "_ToTorchTensor",
      "_FromTorchTensor",
      "Redistribute",
  };
  for (std::string_view caller : kCallers) {
    if (name == caller) return OpClass::kComposite;
  }
  return std::nullopt;
}

}  // namespace flopledger
