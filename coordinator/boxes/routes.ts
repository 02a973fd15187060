// Routes of boxes (spec §4.3).
import { z } from 'zod'
import {
  boxDetailSchema,
  boxIdParamSchema,
  boxListSchema,
  boxResponseSchema,
  CREATE_BOX_ERROR_CODES,
  createBoxRequestSchema,
  deleteBoxResponseSchema,
  listBoxesQuerySchema,
} from '../../shared/api/boxes.ts'
import { LIMITS } from '../../shared/limits.ts'
import { type Route, route } from '../http/route.ts'
import type { BoxService } from './service.ts'

const boxId = z.object({ id: boxIdParamSchema })

export function boxRoutes({ boxes }: { boxes: BoxService }): Route[] {
  return [
    route({
      method: 'GET',
      path: '/boxes',
      summary: 'List boxes, newest first',
      description:
        'Returns the boxes that the API key may access: all of them, or one page with limit. Terminated boxes are included for a time that the operator configures.',
      request: { query: listBoxesQuerySchema },
      responses: { 200: boxListSchema },
      handler: async ({ actor, query: { limit, ...query } }) =>
        limit === undefined && query.before === undefined
          ? { boxes: await boxes.list(actor, { live: query.live === '1' }) }
          : boxes.listPage(actor, { ...query, limit: limit ?? LIMITS.boxPage.max }),
    }),
    route({
      method: 'POST',
      path: '/boxes',
      summary: 'Create a box',
      description:
        'Responds before the box is running: poll GET /boxes/{id} until observedState is running or provision_failed.',
      request: { body: createBoxRequestSchema },
      fieldErrorCodes: CREATE_BOX_ERROR_CODES,
      idempotent: true,
      workspaceWide: true,
      responses: { 202: boxResponseSchema },
      errors: ['not_found', 'name_taken', 'environment_too_large'],
      handler: async ({ actor, body, trx }) => ({ box: await boxes.create(actor, body, trx) }),
    }),
    route({
      method: 'GET',
      path: '/boxes/:id',
      summary: 'Get a box with its state, vitals, recent state changes and current job',
      request: { params: boxId },
      responses: { 200: boxDetailSchema },
      handler: ({ actor, params }) => boxes.get(actor, params.id),
    }),
    route({
      method: 'DELETE',
      path: '/boxes/:id',
      summary: 'Delete a box and its files',
      description:
        'Responds before the box is deleted: poll GET /operations/{id} with the id of the returned operation. Deleting the box again returns the same operation.',
      request: { params: boxId },
      responses: { 202: deleteBoxResponseSchema },
      handler: ({ actor, params }) => boxes.remove(actor, params.id),
    }),
    route({
      method: 'POST',
      path: '/boxes/:id/wake',
      summary: 'Wake a box',
      description:
        'Sets desiredState to running. Poll GET /boxes/{id} until observedState is running. No effect on a running box.',
      request: { params: boxId },
      responses: { 202: boxResponseSchema },
      errors: ['box_failed'],
      handler: async ({ actor, params }) => ({ box: await boxes.wake(actor, params.id) }),
    }),
    route({
      method: 'POST',
      path: '/boxes/:id/suspend',
      summary: 'Suspend a box',
      description: 'Terminates the processes of the box and keeps its files. No effect on a suspended box.',
      request: { params: boxId },
      responses: { 202: boxResponseSchema },
      errors: ['box_failed'],
      handler: async ({ actor, params }) => ({ box: await boxes.suspend(actor, params.id) }),
    }),
  ]
}
