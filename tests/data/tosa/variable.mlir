module {
  tosa.variable @total = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  tosa.variable @calls = dense<0> : tensor<1xi32>
  func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<1xi32>) {
    %t = tosa.variable_read @total : tensor<3xf32>
    %s = tosa.add %t, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    tosa.variable_write @total, %s : tensor<3xf32>
    %one = "tosa.const"() <{values = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>
    %c = tosa.variable_read @calls : tensor<1xi32>
    %d = tosa.add %c, %one : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
    tosa.variable_write @calls, %d : tensor<1xi32>
    %u = tosa.variable_read @total : tensor<3xf32>
    %e = tosa.variable_read @calls : tensor<1xi32>
    return %u, %e : tensor<3xf32>, tensor<1xi32>
  }
}
