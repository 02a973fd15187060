// Reads the id of the dial-back connection that the coordinator requests.
import type { IncomingHttpHeaders } from 'node:http'
import { ApiError } from '../../shared/errors.ts'
import { DIAL_BACK_HEADER } from '../../shared/protocol.ts'

/** @throws ApiError invalid_request */
export function readDialBackId(headers: IncomingHttpHeaders): string {
  const id = headers[DIAL_BACK_HEADER]
  if (typeof id !== 'string')
    throw new ApiError('invalid_request', `The header ${DIAL_BACK_HEADER} is required.`)
  return id
}
