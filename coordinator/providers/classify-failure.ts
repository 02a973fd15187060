// What the error of a provider means for the job that made the call.
import type { FailureKind } from '../jobs/failures.ts'
import { PermanentProviderError, ProviderUnavailableError } from './provider.ts'

export function classifyFailure(error: unknown): FailureKind {
  if (error instanceof PermanentProviderError) return 'permanent'
  return error instanceof ProviderUnavailableError ? 'unavailable' : 'attempt'
}
