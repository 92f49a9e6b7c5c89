module {
  func.func @main(%p: tensor<i1>, %x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %r = tosa.cond_if %p (%a = %x, %b = %y) : tensor<i1> (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32> {
    ^bb0(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>):
      %s = tosa.add %a, %b : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
      tosa.yield %s : tensor<2x3xf32>
    } else {
    ^bb0(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>):
      %s = tosa.sub %a, %b : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
      %e = tosa.exp %s : (tensor<2x3xf32>) -> tensor<2x3xf32>
      tosa.yield %e : tensor<2x3xf32>
    }
    return %r : tensor<2x3xf32>
  }
}
