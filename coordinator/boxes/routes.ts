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
  giveRequestSchema,
  LIST_BOXES_ERROR_CODES,
  listBoxesQuerySchema,
  MOVE_ERROR_CODES,
  moveRequestSchema,
  PATCH_BOX_ERROR_CODES,
  patchBoxRequestSchema,
  RESIZE_ERROR_CODES,
  resizeRequestSchema,
  suspendQuerySchema,
} from '../../shared/api/boxes.ts'
import { LIMITS } from '../../shared/limits.ts'
import { REGIONS, TIER_NAMES } from '../../shared/tiers.ts'
import { ADMISSION_ERRORS } from '../admission/refusal.ts'
import { byKey } from '../http/access.ts'
import { joinFields, sendJson, stringifyPages } from '../http/json-pages.ts'
import { type Route, route } from '../http/route.ts'
import type { GiveBox } from './give.ts'
import type { MoveBox } from './move.ts'
import type { Resizes } from './resize.ts'
import type { BoxService } from './service.ts'

const boxId = z.object({ id: boxIdParamSchema })

export type BoxRoutesOptions = { boxes: BoxService; resizes: Resizes; moveBox: MoveBox; giveBox: GiveBox }

export function boxRoutes({ boxes, resizes, moveBox, giveBox }: BoxRoutesOptions): Route[] {
  return [
    route({
      id: 'boxes.list',
      method: 'GET',
      path: '/boxes',
      access: byKey('boxes', 'read', { acceptsTickets: true }),
      summary: 'List boxes, newest first',
      description:
        'Returns the boxes that the API key may access: all of them, or one page with limit. A terminated box is included until its record is removed, after 30 days unless the operator configures another time (BOXWOOD_DELETED_BOX_DAYS). For a ticket: its box, unless that is deleted or being deleted.',
      request: { query: listBoxesQuerySchema },
      fieldErrorCodes: LIST_BOXES_ERROR_CODES,
      responses: { 200: boxListSchema },
      handler: async ({ actor, query: { limit, ...query }, reply }) => {
        if (limit !== undefined || query.before !== undefined)
          return boxes.listPage(actor, { ...query, limit: limit ?? LIMITS.boxPage.max })
        return sendJson(reply, joinFields({ boxes: await stringifyPages(boxes.listPages(actor, query)) }))
      },
    }),
    route({
      id: 'boxes.create',
      method: 'POST',
      path: '/boxes',
      access: byKey('boxes', 'write', { scope: 'workspace' }),
      summary: 'Create a box',
      description:
        'Responds before the box is running: poll GET /boxes/{id} until observedState is running or provision_failed.',
      request: { body: createBoxRequestSchema },
      fieldErrorCodes: CREATE_BOX_ERROR_CODES,
      idempotent: true,
      responses: { 202: boxResponseSchema },
      errors: [
        ...(['not_found', 'name_taken', 'environment_too_large', 'images_unavailable'] as const),
        ...(['snapshot_in_progress', 'snapshot_unavailable', 'restore_tier_not_allowed'] as const),
        ...ADMISSION_ERRORS.create,
      ],
      errorDescriptions: {
        not_found: 'There is no such snapshot, template or environment, or this API key may not access it.',
      },
      handler: async ({ actor, body, trx }) => ({ box: await boxes.create(actor, body, trx) }),
    }),
    route({
      id: 'boxes.get',
      method: 'GET',
      path: '/boxes/:id',
      atOwnerOf: 'id',
      access: byKey('boxes', 'read', { acceptsTickets: true }),
      summary: 'Get a box with its state, vitals, recent state changes and current job',
      request: { params: boxId },
      responses: { 200: boxDetailSchema },
      handler: ({ actor, params }) => boxes.get(actor, params.id),
    }),
    route({
      id: 'boxes.update',
      method: 'PATCH',
      path: '/boxes/:id',
      atOwnerOf: 'id',
      access: byKey('boxes', 'write'),
      summary:
        'Change the name and the labels of a box, when it is suspended and snapshotted, or its environment variables',
      description:
        'A request has either env, or at least one of the other fields. A deadline can be set while the box is running, and cleared at any time. The name can be changed in every state, also of an enrolled machine.',
      request: { params: boxId, body: patchBoxRequestSchema },
      fieldErrorCodes: PATCH_BOX_ERROR_CODES,
      responses: { 200: boxResponseSchema },
      errors: [
        'name_taken',
        'box_not_running',
        'no_volume',
        'not_owner',
        'environment_too_large',
        ...ADMISSION_ERRORS.patch,
      ],
      errorDescriptions: {
        box_not_running: 'A deadline can be set only while the box runs. Wake it first.',
        no_volume:
          'The box is an enrolled machine, which has no deadline, no automatic pause and no snapshots.',
        not_owner: 'Only an owner of the workspace may change quietHoursExempt.',
      },
      handler: async ({ actor, params, body }) => ({ box: await boxes.patch(actor, params.id, body) }),
    }),
    route({
      id: 'boxes.delete',
      method: 'DELETE',
      path: '/boxes/:id',
      atOwnerOf: 'id',
      access: byKey('boxes', 'write'),
      summary: 'Delete a box and its files',
      description:
        'Responds before the box is deleted: poll GET /operations/{id} with the id of the returned operation. Deleting the box again returns the same operation. What the agent of an enrolled machine has not sent is lost if it is not connected: records and output of commands, and samples.',
      request: { params: boxId },
      responses: { 202: deleteBoxResponseSchema },
      handler: ({ actor, params }) => boxes.remove(actor, params.id),
    }),
    route({
      id: 'boxes.wake',
      method: 'POST',
      path: '/boxes/:id/wake',
      access: byKey('boxes', 'run', { acceptsTickets: true }),
      summary: 'Wake a box',
      description:
        'Sets desiredState to running. Poll GET /boxes/{id} until observedState is running. No effect on a running box.',
      request: { params: boxId },
      responses: { 202: boxResponseSchema },
      errors: ['box_failed', ...ADMISSION_ERRORS.wake],
      handler: async ({ actor, params }) => ({ box: await boxes.wake(actor, params.id) }),
    }),
    route({
      id: 'boxes.suspend',
      method: 'POST',
      path: '/boxes/:id/suspend',
      access: byKey('boxes', 'write'),
      summary: 'Suspend a box',
      description:
        'Keeps the files of the box. Where the machine can freeze processes, they keep their memory for a time that the operator configures, and continue when the box is woken; otherwise they are terminated. suspendedAs of the box says which. No effect on a suspended box, except with stop=1 on a frozen one. A box that could not be provisioned gets the desired state, and stays failed.',
      request: { params: boxId, query: suspendQuerySchema },
      responses: { 202: boxResponseSchema },
      errors: ['no_volume'],
      errorDescriptions: {
        no_volume:
          'The box is an enrolled machine, which cannot be suspended. Shut it down on the machine itself.',
      },
      handler: async ({ actor, params, query }) => ({
        box: await boxes.suspend(actor, params.id, { stop: query.stop ?? false }),
      }),
    }),
    route({
      id: 'boxes.resize',
      method: 'POST',
      path: '/boxes/:id/resize',
      access: byKey('boxes', 'write'),
      summary: 'Change the tier of a box',
      description:
        'A running box restarts with the limits of the tier: its processes are terminated. They continue where the region can change the size of a running box (`resize` of GET /regions). A suspended box gets them when it is woken; a frozen one is stopped. Rejected while the box is between two states, and when its files do not fit on the disk of the tier, or are too many for it. No effect on a box with this tier.',
      request: { params: boxId, body: resizeRequestSchema },
      fieldErrorCodes: RESIZE_ERROR_CODES,
      idempotent: true,
      responses: { 202: boxResponseSchema },
      errors: ['resize_rejected', ...ADMISSION_ERRORS.resize],
      errorDescriptions: {
        invalid_tier: `target_tier must be one of ${TIER_NAMES.join(', ')}`,
        resize_rejected:
          'The box is between two states, its files do not fit on the disk of the tier, or it is an enrolled machine. The message says which.',
      },
      prepare: ({ actor, params }) => resizes.measure(actor, params.id),
      handler: async ({ actor, params, body, trx, prepared }) => ({
        box: await resizes.resize(
          actor,
          params.id,
          body.target_tier,
          (prepared as Awaited<ReturnType<typeof resizes.measure>> | undefined) ?? null,
          trx,
        ),
      }),
    }),
    route({
      id: 'boxes.move',
      method: 'POST',
      path: '/boxes/:id/region',
      access: byKey('boxes', 'write'),
      summary: 'Move a box to another region',
      description:
        'Stops the box, copies its files, and starts it in the region if it was running. desiredRegion is set until then. When the move fails, the box continues in its region. Rejected while the box is between two states, where the provider of the region cannot keep the files of the box (a box with an image moves to a region with images only, one without to one without), and for the second move of a box or the fourth in the workspace within 24 hours. No effect on a box in this region.',
      request: { params: boxId, body: moveRequestSchema },
      fieldErrorCodes: MOVE_ERROR_CODES,
      idempotent: true,
      responses: { 202: boxResponseSchema },
      errors: ['move_rejected', ...ADMISSION_ERRORS.move],
      errorDescriptions: {
        invalid_region: `region must be one of ${REGIONS.join(', ')} that this coordinator serves`,
        move_rejected:
          'The box is between two states, a limit of moves is reached, or the box is an enrolled machine. The message says which.',
      },
      handler: async ({ actor, params, body, trx }) => ({
        box: await moveBox(actor, params.id, body.region, trx),
      }),
    }),
    route({
      id: 'boxes.give',
      method: 'POST',
      path: '/boxes/:id/owner',
      access: byKey('boxes', 'write', { roles: 'not_contractor' }),
      summary: 'Give a box to another member',
      description:
        'For the owner of the box and owners of the workspace. The box and its snapshots belong to the member from then on, who is charged for them; the policies memberBoxLimit and memberSpendCapUsd must allow the member one more box. Secrets that only a grant to the previous owner allows are unmounted. A box that a contractor gets becomes restricted, and stays so. The box keeps running.',
      request: { params: boxId, body: giveRequestSchema },
      idempotent: true,
      responses: { 200: boxResponseSchema },
      errors: ['not_owner', 'member_not_found', ...ADMISSION_ERRORS.give],
      errorDescriptions: {
        not_owner: 'The box belongs to another member, and you are not an owner of the workspace.',
        member_not_found:
          'The workspace has no such member, or the member has not accepted the invitation yet.',
      },
      handler: async ({ actor, params, body, trx }) => ({
        box: await giveBox(actor, params.id, body, trx),
      }),
    }),
  ]
}
