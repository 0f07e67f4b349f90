"""Configurations of the older form, with every key that it had, written for these tests."""

from __future__ import annotations

from typing import Any

PHOTO = [1, 3, 32, 32]
CHANNELS_LAST = [1, 32, 32, 3]


def library(name: str, **changes: Any) -> dict[str, Any]:
    """An entry of dll_libraries with every key."""
    value = {
        "library": name,
        "load": "library",
        "opset": 13,
        "dependency": "keras.applications.resnet_v2",
        "model": "keras.applications.ResNet50V2",
        "converted_lib_model_name": "ignored",
        "input_name": "pixels:0",
        "output_name": "classes:0",
        "scalar_input": False,
        "input": [1, 224, 224, 3],
        "output": [1, 1000],
        "image_dimension": [224, 224],
        "args_no": 1,
        "execution_type": "library",
        "dtype": "float32",
    }
    return value | changes


def torch_library(name: str, **changes: Any) -> dict[str, Any]:
    """An entry that loads torchvision's ResNet-18."""
    network = "torchvision_models.resnet18"
    return library(name, dependency=network, model=network, input=[1, 3, 224, 224]) | changes


def model(**changes: Any) -> dict[str, Any]:
    """A model with every key."""
    value = {
        "name": "ResNet18",
        "alias": "resnet18.onnx",
        "skip_analysis": False,
        "build": True,
        "execute": True,
        "build_dlls": True,
        "execute_dlls": True,
        "evaluate": True,
        "evaluate_dlls": True,
        "load": "local",
        "url": "torchvision_models.resnet18",
        "url2": "https://example.org/resnet18.onnx",
        "model": "torchvision_models.resnet18",
        "type": "library",
        "library": "torch",
        "category": "classification",
        "input_name": "pixels:0",
        "input_name_url": "pixels",
        "output_name": "classes",
        "dl_input_name": "pixels",
        "ranks_url": "https://example.org/ranks",
        "dll_alias": "ResNet",
        "dtype": "float32",
        "opset": 11,
        "layers": {"image_dimension": [224, 224], "input": [1, 3, 224, 224], "output": [1, 1000]},
        "paths": {
            "models_out_relative": "/out/models/",
            "dll_models_out_relative": "/out/conversions/",
            "exec_out_relative": "/out/runs/",
            "dll_exec_out_relative": "/out/runs/conversions/",
            "evaluation_out_relative": "/out/results/",
            "export_dll_models_out_relative": "/out/exported/",
        },
        "dll_libraries": [
            torch_library("torch"),
            torch_library("torch_to_keras"),
            torch_library("torch_to_tflite", opset=5),
            torch_library("noop_torch_to_tf"),
            library("keras_library_to_torch"),
            library("keras_library_to_tflite"),
            library("tflite", model="net.tflite", dependency="net.tflite", input=CHANNELS_LAST),
        ],
        "export_dlls": True,
        "export_dll_libraries": [torch_library("torch", format="onnx")],
        "dll_libraries_disabled": [{"library": "tf"}],
    }
    return value | changes


def repair(**changes: Any) -> dict[str, Any]:
    """A repair with every key."""
    data = {
        "name": "net.onnx",
        "model_name": "torchvision_models.resnet18",
        "image_dimension": [64, 32],
        "input": PHOTO,
        "input_name": "pixels",
        "output": [1, 10],
        "output_name": "classes",
        "library": "onnx",
        "preprocessing_enabled": True,
        "debug_enabled": True,
        "dtype": "float32",
    }
    target = {"model_name": "keras.applications.resnet_v2", "input": CHANNELS_LAST, "transpose_order": [0, 3, 1, 2]}
    value = {
        "source_rel_path": "/models/net.onnx",
        "target_rel_path": "/models/converted/net.onnx",
        "out_rel_path": "/models/repaired",
        "source_model_data": data,
        "target_model_data": data | target,
        "settings": {
            "enable_layer_analysis": True,
            "enable_model_repair": True,
            "enable_dim_fix": True,
            "enable_transpose": False,
            "align_dimension": True,
            "clear_multiple_outputs": False,
            "continue_repair_when_image_fixed": True,
            "similar_sample": 10,
            "dissimilar_sample": 12,
            "time_limit": 600,
            "no_of_layer_iterations": 2,
        },
    }
    return value | changes


def config(**changes: Any) -> dict[str, Any]:
    """A whole configuration with every key."""
    device = {"host": "llvm", "address": "127.0.0.1", "port": 5000}
    value = {
        "note": "every key",
        "preprocessing_enabled": True,
        "debug_enabled": True,
        "backend": "tvm",
        "runs_no": 2,
        "initial_analysis_enabled": False,
        "layer_analysis_enabled": False,
        "model_repair_enabled": True,
        "model_repair_config": repair(),
        "models": [model()],
        "devices": {
            "id": 0,
            "selected": "graphics",
            "graphics": device | {"host_type": "local_no_rpc", "target": "opencl", "target_framework": "opencl"},
            "board": device | {"host_type": "remote", "target": "cuda", "target_framework": "cuda"},
            "cpu": device | {"host_type": "local", "target": "llvm -mcpu=core-avx2", "target_framework": "cpu"},
        },
        "selected_dataset": 1,
        "datasets": [
            {"title": "Small", "type": "local", "dataset_path_relative": "/images/small"},
            {"title": "Large", "type": "local", "dataset_path_relative": "/images/large"},
        ],
        "opt_level": 3,
        "opt_alias": "",
        "required_pass": ["FoldConstant"],
        "disabled_pass": ["OpFusion"],
        "quantize": True,
        "enable_mutations": True,
        "conv_analysis_enabled": True,
        "conv_analysis_data": {
            "debug_path1": "/a",
            "debug_path2": "/b",
            "lib1_activation_params": "p1",
            "lib2_activation_params": "p2",
            "analysis_output": "/c",
        },
    }
    return value | changes


def minimal(**changes: Any) -> dict[str, Any]:
    """The least that is recognised: a pair of files that is compared and localized."""
    section = {
        "source_rel_path": "/net.onnx",
        "target_rel_path": "/other.onnx",
        "settings": {"enable_model_repair": True},
    }
    return {"model_repair_config": section, "models": []} | changes
