module {
  func.func @main(%n: tensor<i32>, %x: tensor<2x3xf32>) -> (tensor<i32>, tensor<2x3xf32>) {
    %r:2 = tosa.while_loop (%i = %n, %a = %x) : (tensor<i32>, tensor<2x3xf32>) -> (tensor<i32>, tensor<2x3xf32>) {
      %zero = "tosa.const"() <{values = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %c = tosa.greater %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
      tosa.yield %c : tensor<i1>
    } do {
    ^bb0(%i: tensor<i32>, %a: tensor<2x3xf32>):
      %one = "tosa.const"() <{values = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %j = tosa.sub %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %two = "tosa.const"() <{values = dense<2> : tensor<i32>}> : () -> tensor<i32>
      %p = tosa.greater %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %t = tosa.cond_if %p (%v = %a) : tensor<i1> (tensor<2x3xf32>) -> tensor<2x3xf32> {
      ^bb0(%v: tensor<2x3xf32>):
        %s = tosa.tanh %v : (tensor<2x3xf32>) -> tensor<2x3xf32>
        tosa.yield %s : tensor<2x3xf32>
      } else {
      ^bb0(%v: tensor<2x3xf32>):
        %s = tosa.add %v, %v : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
        tosa.yield %s : tensor<2x3xf32>
      }
      tosa.yield %j, %t : tensor<i32>, tensor<2x3xf32>
    }
    return %r#0, %r#1 : tensor<i32>, tensor<2x3xf32>
  }
}
