// Errors for an agent that violates the protocol, or has an earlier version of it.
import { ApiError } from '../../../shared/errors.ts'
import { CHUNKS_PROTOCOL_VERSION } from '../../../shared/protocol.ts'

/** @param problem a sentence about the agent */
export const createAgentProtocolError = (problem: string, cause?: unknown) =>
  new ApiError('exec_failed', `${problem} If this persists, suspend and wake the box to restart its agent.`, {
    cause,
  })

export const createTooLargeError = (limit: number) =>
  createAgentProtocolError(`The response of the agent exceeds ${limit} bytes.`)

/** A request that agents of earlier versions cannot serve. */
export const createVersionError = () =>
  new ApiError(
    'box_unreachable',
    'The agent of the box has an earlier version, which cannot serve this request. Try again when it has been upgraded.',
  )

/** @throws ApiError box_unreachable */
export function assertTransfers({ protocolVersion }: { protocolVersion: number }): void {
  if (protocolVersion < CHUNKS_PROTOCOL_VERSION) throw createVersionError()
}
