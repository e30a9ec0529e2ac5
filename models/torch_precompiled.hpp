// What every file that sees LibTorch includes first: tensors and autograd, and no more than those,
// because LibTorch's wider headers cost tens of seconds per file.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>
