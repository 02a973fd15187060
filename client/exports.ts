// What a program imports from boxwood-client.

export { Box, type BoxData, TemporaryBox, type WaitOptions } from './boxes/box.ts'
export { Boxes, type ListOptions } from './boxes/boxes.ts'
export { Files, type WriteOptions } from './boxes/files.ts'
export type { Exit, Offsets, OutputChunk, OutputStream } from './boxes/output.ts'
export { Ports, type ShareOptions } from './boxes/ports.ts'
export {
  type ExecOptions,
  type ExecResult,
  type OutputOptions,
  Process,
  type StartOptions,
} from './boxes/process.ts'
export { type EventsOptions, PromptRun, Prompts } from './boxes/prompts.ts'
export { Boxwood, type BoxwoodOptions } from './boxwood.ts'
export type { Routes } from './generated/routes.ts'
export type * from './generated/types.ts'
export type { CallInput, CallOptions } from './http/calls.ts'
export {
  AuthenticationError,
  BoxwoodError,
  ConflictError,
  ConnectionError,
  InvalidRequestError,
  NotFoundError,
  PaymentRequiredError,
  PermissionError,
  PolicyDeniedError,
  RateLimitError,
  TimeoutError,
  UnavailableError,
} from './http/errors.ts'
export type {
  OpenResponse,
  RequestBody,
  ResponseBody,
  Transport,
  TransportRequest,
  TransportResponse,
} from './http/transport.ts'
