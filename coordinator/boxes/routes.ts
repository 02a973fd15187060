// The routes of boxes (spec §4.3).
import { z } from 'zod'
import {
  boxAnswer,
  boxDeleted,
  boxDetail,
  boxList,
  CREATE_BOX_CODES,
  createBox,
  listBoxesQuery,
} from '../../shared/api/boxes.ts'
import { type Route, route } from '../http/route.ts'
import type { BoxService } from './service.ts'

const boxId = z.object({ id: z.uuid() })

export function boxRoutes({ boxes }: { boxes: BoxService }): Route[] {
  return [
    route({
      method: 'GET',
      path: '/boxes',
      summary: 'The boxes the caller may see, newest first',
      request: { query: listBoxesQuery },
      answers: { 200: boxList },
      handle: async ({ actor, query }) => ({ boxes: await boxes.list(actor, { live: query.live === '1' }) }),
    }),
    route({
      method: 'POST',
      path: '/boxes',
      summary: 'Create a box; poll it until it runs',
      request: { body: createBox },
      codes: CREATE_BOX_CODES,
      idempotent: true,
      workspaceWide: true,
      answers: { 202: boxAnswer },
      errors: ['not_found', 'name_taken', 'environment_too_large'],
      handle: async ({ actor, body, trx }) => ({ box: await boxes.create(actor, body, trx) }),
    }),
    route({
      method: 'GET',
      path: '/boxes/:id',
      summary: 'A box with its state, vitals, last state changes and the change in flight',
      request: { params: boxId },
      answers: { 200: boxDetail },
      handle: ({ actor, params }) => boxes.get(actor, params.id),
    }),
    route({
      method: 'DELETE',
      path: '/boxes/:id',
      summary: 'Delete a box and everything in it; follow the operation',
      request: { params: boxId },
      answers: { 202: boxDeleted },
      handle: ({ actor, params }) => boxes.remove(actor, params.id),
    }),
    route({
      method: 'POST',
      path: '/boxes/:id/wake',
      summary: 'Have the box running',
      request: { params: boxId },
      answers: { 202: boxAnswer },
      errors: ['box_failed'],
      handle: async ({ actor, params }) => ({ box: await boxes.wake(actor, params.id) }),
    }),
    route({
      method: 'POST',
      path: '/boxes/:id/suspend',
      summary: 'Have the box suspended: its processes end, its files stay',
      request: { params: boxId },
      answers: { 202: boxAnswer },
      errors: ['box_failed'],
      handle: async ({ actor, params }) => ({ box: await boxes.suspend(actor, params.id) }),
    }),
  ]
}
