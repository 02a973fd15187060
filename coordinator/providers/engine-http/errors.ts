// The errors of calls to an engine. A caller that knows more than the engine throws an error of provider.ts instead.
import { ExpectedError } from '../../base/expected-error.ts'
import { ProviderUnavailableError } from '../provider.ts'

/** The engine cannot be reached, or the connection broke. The outcome of the call is unknown. */
export class EngineUnavailableError extends ProviderUnavailableError {
  override name = 'EngineUnavailableError'
}

/**
 * The engine did not answer within the time limit. The outcome of the call is unknown. The engine may work for other boxes, and a
 * box can cause this: jobs count it as a failed attempt.
 */
export class EngineTimeoutError extends ExpectedError {
  override name = 'EngineTimeoutError'
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
