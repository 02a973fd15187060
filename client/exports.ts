// What a program imports from boxwood-client.

export type { OutputChannel, TerminalSize } from './attach/format.ts'
export { Audit } from './audit.ts'
export type { Attached } from './boxes/attached.ts'
export { AttachedProcess, type AttachOptions } from './boxes/attached-process.ts'
export { Box, type BoxData, TemporaryBox, type WaitOptions } from './boxes/box.ts'
export { Boxes, type ListOptions } from './boxes/boxes.ts'
export { Commands } from './boxes/commands.ts'
export { Files, type WriteOptions } from './boxes/files.ts'
export type { Exit, Offsets, OutputChunk, OutputStream } from './boxes/output.ts'
export type { Filter } from './boxes/pages.ts'
export { Ports, type ShareOptions } from './boxes/ports.ts'
export {
  type ExecOptions,
  type ExecResult,
  type OutputOptions,
  Process,
  type StartAttachedOptions,
  type StartOptions,
} from './boxes/process.ts'
export { type EventsOptions, PromptRun, Prompts } from './boxes/prompts.ts'
export {
  type AttachTerminalOptions,
  type OpenTerminalOptions,
  Terminal,
  type TerminalOutput,
  Terminals,
} from './boxes/terminals.ts'
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
export type { Socket, SocketHandlers } from './http/socket.ts'
export type {
  OpenResponse,
  RequestBody,
  ResponseBody,
  SocketRequest,
  Transport,
  TransportRequest,
  TransportResponse,
} from './http/transport.ts'
