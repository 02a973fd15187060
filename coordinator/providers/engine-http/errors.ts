// The errors of calls to an engine. A caller that knows more than the engine throws an error of provider.ts instead.
import { ExpectedError } from '../../base/expected-error.ts'

/** The engine does not answer, or the connection broke. A retry may succeed. */
export class EngineUnavailableError extends ExpectedError {
  override name = 'EngineUnavailableError'
}

/** The engine has answered with an error. */
export class EngineStatusError extends ExpectedError {
  override name = 'EngineStatusError'
  readonly status: number
  /** The message of the engine alone. */
  readonly reason: string

  constructor(engine: string, request: string, status: number, reason: string) {
    super(`${engine} refused ${request} with status ${status}: ${reason}`)
    this.status = status
    this.reason = reason
  }
}

export const hasStatus = (error: unknown, ...statuses: number[]): error is EngineStatusError =>
  error instanceof EngineStatusError && statuses.includes(error.status)

/** Resolves to undefined when the engine answers with one of the statuses. */
export const ignoreStatus =
  (...statuses: number[]) =>
  (error: unknown): undefined => {
    if (!hasStatus(error, ...statuses)) throw error
  }
