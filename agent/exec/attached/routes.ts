// Route GET /exec/{processId}/attach: connects a client to an attached command over a dial-back connection.
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { attachQuerySchema } from '../../../shared/api/attach.ts'
import { DIAL_BACK_HEADER } from '../../../shared/protocol.ts'
import type { AttachDialer } from '../../attach/attach-dialer.ts'
import { readDialBackId } from '../../tunnel/dial-back-id.ts'
import { validateRequest } from '../../validate-request.ts'
import type { Attachments } from './attachments.ts'
import { serveAttachedClient } from './serve-client.ts'

export type AttachedRouteDeps = {
  attachments: Attachments
  attachDialer: AttachDialer
  log: FastifyBaseLogger
}

/**
 * The response is empty and repeats the id of DIAL_BACK_HEADER; the messages follow on that connection.
 * @throws ApiError not_found, invalid_request
 */
export function attachedRoutes(
  app: FastifyInstance,
  { attachments, attachDialer, log }: AttachedRouteDeps,
): void {
  app.get<{ Params: { processId: string } }>(
    '/exec/:processId/attach',
    { exposeHeadRoute: false },
    (request, reply) => {
      const attachment = attachments.get(request.params.processId)
      const query = validateRequest(attachQuerySchema, request.query, { root: 'query' })
      const id = readDialBackId(request.headers)
      const from = { stdout: query.stdoutOffset ?? 0, stderr: query.stderrOffset ?? 0 }
      attachDialer
        .connect(id)
        .then((socket) => serveAttachedClient(attachment, socket, from, log))
        .catch((err: unknown) => log.debug({ err }, 'an attached client disconnected early'))
      return reply.header(DIAL_BACK_HEADER, id).send('')
    },
  )
}
