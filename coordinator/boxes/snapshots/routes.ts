// Routes of snapshots (spec §4.8), and the routes of boxes that take one (spec §4.3).
import { z } from 'zod'
import { boxIdParamSchema, boxResponseSchema } from '../../../shared/api/boxes.ts'
import {
  createSnapshotRequestSchema,
  createTemplateRequestSchema,
  deleteSnapshotResponseSchema,
  forkRequestSchema,
  forkResponseSchema,
  listSnapshotsQuerySchema,
  nameTemplateRequestSchema,
  RESTORE_ERROR_CODES,
  restoreRequestSchema,
  SNAPSHOT_ERROR_CODES,
  SNAPSHOT_NAME_RULE,
  snapshotListSchema,
  snapshotResponseSchema,
  TEMPLATE_ERROR_CODES,
  templateResponseSchema,
} from '../../../shared/api/snapshots.ts'
import { ADMISSION_ERRORS } from '../../admission/refusal.ts'
import { byKey } from '../../http/access.ts'
import { idParam, type Route, route } from '../../http/route.ts'
import type { SnapshotService } from './service.ts'

const snapshotId = z.object({ id: idParam })
const boxId = z.object({ id: boxIdParamSchema })

/** The reasons of findFilesProblem(). */
const NO_VOLUME =
  'The box has no files that can be copied: it has not been provisioned yet, its provisioning failed, it has been deleted, or it is an enrolled machine. The message says which.'
const INVALID_TEMPLATE = `name ${SNAPSHOT_NAME_RULE}`
const TEMPLATE_NOT_ALLOWED =
  'The name belongs to a template that this API key or user may not change. Choose another name.'

export function snapshotRoutes({ snapshots }: { snapshots: SnapshotService }): Route[] {
  return [
    route({
      id: 'snapshots.list',
      method: 'GET',
      path: '/snapshots',
      access: byKey('boxes', 'read'),
      summary: 'List snapshots, newest first',
      description: 'Returns the snapshots of the boxes that the API key may access, also of deleted boxes.',
      request: { query: listSnapshotsQuerySchema },
      responses: { 200: snapshotListSchema },
      handler: async ({ actor, query }) => ({
        snapshots: await snapshots.list(actor, { includeTransient: query.transient ?? false }),
      }),
    }),
    route({
      id: 'snapshots.create',
      method: 'POST',
      path: '/snapshots',
      access: byKey('boxes', 'write'),
      summary: 'Take a snapshot of the files of a box',
      description:
        'Responds before the files have been captured: poll GET /snapshots until the status is available or failed. The processes of a running box are paused while its files are captured. Names are not unique.',
      request: { body: createSnapshotRequestSchema },
      fieldErrorCodes: SNAPSHOT_ERROR_CODES,
      idempotent: true,
      responses: { 201: snapshotResponseSchema },
      errors: ['not_found', 'no_volume', 'snapshot_limit', ...ADMISSION_ERRORS.snapshot],
      errorDescriptions: {
        invalid_name: `name ${SNAPSHOT_NAME_RULE}`,
        no_volume: NO_VOLUME,
        not_found: 'There is no such box, or this API key may not access it.',
      },
      handler: async ({ actor, body, trx }) => ({ snapshot: await snapshots.create(actor, body, trx) }),
    }),
    route({
      id: 'snapshots.delete',
      method: 'DELETE',
      path: '/snapshots/:id',
      access: byKey('boxes', 'write'),
      summary: 'Delete a snapshot',
      description:
        'Responds before the snapshot is deleted: poll GET /operations/{id} with the id of the returned operation. A snapshot from which a box is being created is deleted when the box has its files; any other capture in progress is cancelled. Deleting the snapshot again returns the same operation.',
      request: { params: snapshotId },
      responses: { 202: deleteSnapshotResponseSchema },
      handler: ({ actor, params }) => snapshots.remove(actor, params.id),
    }),
    route({
      id: 'snapshots.restore',
      method: 'POST',
      path: '/snapshots/:id/restore',
      access: byKey('boxes', 'write', { scope: 'workspace' }),
      summary: 'Create a box with the files of a snapshot',
      description:
        'A box from a snapshot that is still being taken waits for the files. The box is in the region of the snapshot and has its variables, its environment unless the request names another, and its secrets as far as their grants cover the new box. Responds before the box is running: poll GET /boxes/{id} until observedState is running or provision_failed.',
      request: { params: snapshotId, body: restoreRequestSchema },
      fieldErrorCodes: RESTORE_ERROR_CODES,
      idempotent: true,
      responses: { 202: boxResponseSchema },
      errors: [
        ...(['snapshot_unavailable', 'name_taken', 'invalid_region', 'restore_tier_not_allowed'] as const),
        ...ADMISSION_ERRORS.restore,
      ],
      errorDescriptions: { invalid_region: 'The coordinator does not serve the region of the snapshot.' },
      handler: async ({ actor, params, body, trx }) => ({
        box: await snapshots.restore(actor, params.id, body, trx),
      }),
    }),
    route({
      id: 'snapshots.makeTemplate',
      method: 'POST',
      path: '/snapshots/:id/template',
      access: byKey('boxes', 'write', { scope: 'workspace' }),
      summary: 'Make a snapshot a template',
      description:
        'A template is a snapshot with a name that is unique in the workspace: POST /boxes with fromTemplate creates a box from it. A snapshot that had the name before loses it. A template does not expire.',
      request: { params: snapshotId, body: nameTemplateRequestSchema },
      fieldErrorCodes: TEMPLATE_ERROR_CODES,
      responses: { 200: templateResponseSchema },
      errors: ['snapshot_in_progress', 'snapshot_unavailable', 'not_allowed', 'workspace_closing'],
      errorDescriptions: { invalid_template: INVALID_TEMPLATE, not_allowed: TEMPLATE_NOT_ALLOWED },
      handler: ({ actor, params, body }) => snapshots.nameTemplate(actor, params.id, body.name),
    }),
    route({
      id: 'snapshots.removeTemplate',
      method: 'DELETE',
      path: '/snapshots/:id/template',
      access: byKey('boxes', 'write', { scope: 'workspace' }),
      summary: 'Make a template a plain snapshot',
      description: 'No effect on a snapshot that is not a template.',
      request: { params: snapshotId },
      responses: { 200: snapshotResponseSchema },
      handler: async ({ actor, params }) => ({
        snapshot: await snapshots.removeTemplateName(actor, params.id),
      }),
    }),
  ]
}

export function boxSnapshotRoutes({ snapshots }: { snapshots: SnapshotService }): Route[] {
  return [
    route({
      id: 'boxes.fork',
      method: 'POST',
      path: '/boxes/:id/fork',
      access: byKey('boxes', 'write', { scope: 'workspace' }),
      summary: 'Create a box with a copy of the files of a box',
      description:
        'Captures the files of the box and creates a new box from them, in the same region and with the same variables, the same version of its environment unless the request names another, and its secrets as far as their grants cover the new box. Responds before the new box is running: poll GET /boxes/{id} until observedState is running or provision_failed. Processes and their memory are not copied.',
      request: { params: boxId, body: forkRequestSchema },
      fieldErrorCodes: RESTORE_ERROR_CODES,
      idempotent: true,
      responses: { 202: forkResponseSchema },
      errors: [
        ...([
          'no_volume',
          'name_taken',
          'invalid_region',
          'restore_tier_not_allowed',
          'snapshot_limit',
        ] as const),
        ...ADMISSION_ERRORS.fork,
      ],
      errorDescriptions: {
        invalid_region: 'The coordinator does not serve the region of the box.',
        no_volume: NO_VOLUME,
        restore_tier_not_allowed: 'The disk of this tier is too small for the files. Choose a larger tier.',
      },
      handler: ({ actor, params, body, trx }) => snapshots.fork(actor, params.id, body, trx),
    }),
    route({
      id: 'boxes.createTemplate',
      method: 'POST',
      path: '/boxes/:id/template',
      access: byKey('boxes', 'write', { scope: 'workspace' }),
      summary: 'Take a snapshot of a box as a template',
      description:
        'A snapshot that had the name before loses it now, not when the new template is available. Creating a box from the template responds with snapshot_in_progress until then, and with snapshot_unavailable when the capture has failed.',
      request: { params: boxId, body: createTemplateRequestSchema },
      fieldErrorCodes: TEMPLATE_ERROR_CODES,
      idempotent: true,
      responses: { 201: snapshotResponseSchema },
      errors: ['no_volume', 'snapshot_limit', 'not_allowed', ...ADMISSION_ERRORS.template],
      errorDescriptions: {
        invalid_template: INVALID_TEMPLATE,
        no_volume: NO_VOLUME,
        not_allowed: TEMPLATE_NOT_ALLOWED,
      },
      handler: async ({ actor, params, body, trx }) => ({
        snapshot: await snapshots.createTemplate(actor, params.id, body, trx),
      }),
    }),
  ]
}
