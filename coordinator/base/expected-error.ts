// An error that the coordinator throws on purpose, with a message for people. The log omits its stack.

export class ExpectedError extends Error {
  override name = 'ExpectedError'
}
