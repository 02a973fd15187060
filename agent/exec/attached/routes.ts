// Route GET /exec/{processId}/attach: connects a client to an attached command over a dial-back connection.
import type { Logger } from 'pino'
import { attachQuerySchema } from '../../../shared/api/attach.ts'
import type { AttachDialer } from '../../attach/attach-dialer.ts'
import { readDialBackId } from '../../requests/dial-back-id.ts'
import { EMPTY_RESPONSE, type JsonRouter } from '../../requests/json-routes.ts'
import { validateRequest } from '../../validate-request.ts'
import type { Attachments } from './attachments.ts'
import { serveAttachedClient } from './serve-client.ts'

export type AttachedRouteDeps = {
  attachments: Attachments
  attachDialer: AttachDialer
  log: Logger
}

/**
 * The response is empty; the messages follow on the connection with the id of DIAL_BACK_HEADER.
 * @throws ApiError not_found, invalid_request
 */
export function attachedRoutes(
  router: JsonRouter,
  { attachments, attachDialer, log }: AttachedRouteDeps,
): void {
  router.add('GET', '/exec/:processId/attach', ({ params, query, headers }) => {
    const attachment = attachments.get(params.processId)
    const { stdoutOffset, stderrOffset } = validateRequest(attachQuerySchema, query, { root: 'query' })
    const id = readDialBackId(headers)
    const from = { stdout: stdoutOffset ?? 0, stderr: stderrOffset ?? 0 }
    attachDialer
      .connect(id)
      .then((socket) => serveAttachedClient(attachment, socket, from, log))
      .catch((err: unknown) => log.debug({ err }, 'an attached client disconnected early'))
    return EMPTY_RESPONSE
  })
}
