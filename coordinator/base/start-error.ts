// The error for problems that prevent a start and that the operator can fix. Its message is printed without a stack.

export class StartError extends Error {
  override name = 'StartError'
}
