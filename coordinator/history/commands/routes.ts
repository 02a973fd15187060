// Routes of the command history (spec §4.4).
import { z } from 'zod'
import { boxIdParamSchema } from '../../../shared/api/boxes.ts'
import {
  COMMAND_LIST_ERROR_CODES,
  commandListQuerySchema,
  commandListSchema,
  commandOutputQuerySchema,
  commandOutputSchema,
  commandResponseSchema,
  deleteCommandsResponseSchema,
} from '../../../shared/api/commands.ts'
import { byKey } from '../../http/access.ts'
import { type Route, route } from '../../http/route.ts'
import type { CommandHistory } from './service.ts'

/** Spec §4.4.5: a limited key needs Boxes: Write also to read. The area history lets other keys read. */
const read = byKey('boxes', 'write', { orReadsHistory: true })
const write = byKey('boxes', 'write')
const boxParams = z.object({ id: boxIdParamSchema })
const commandParams = boxParams.extend({ commandId: z.string() })

export function commandRoutes({ commands }: { commands: CommandHistory }): Route[] {
  return [
    route({
      id: 'commands.list',
      method: 'GET',
      path: '/boxes/:id/commands',
      atOwnerOf: 'id',
      summary: 'List the commands of a box, newest first',
      description: 'Works while the box is suspended.',
      request: { params: boxParams, query: commandListQuerySchema },
      fieldErrorCodes: COMMAND_LIST_ERROR_CODES,
      access: read,
      responses: { 200: commandListSchema },
      handler: ({ actor, params, query }) => commands.list(actor, params.id, query),
    }),
    route({
      id: 'commands.get',
      method: 'GET',
      path: '/boxes/:id/commands/:commandId',
      atOwnerOf: 'id',
      summary: 'Get a command',
      description: 'Returns who ran the command, its status and its exit code.',
      request: { params: commandParams },
      access: read,
      responses: { 200: commandResponseSchema },
      handler: async ({ actor, params }) => ({
        command: await commands.get(actor, params.id, params.commandId),
      }),
    }),
    route({
      id: 'commands.getOutput',
      method: 'GET',
      path: '/boxes/:id/commands/:commandId/output',
      atOwnerOf: 'id',
      summary: 'Get the output of a command',
      description: 'Returns one page. Repeat with offset = nextOffset until done is true.',
      request: { params: commandParams, query: commandOutputQuerySchema },
      access: read,
      responses: { 200: commandOutputSchema },
      handler: ({ actor, params, query }) => commands.getOutput(actor, params.id, params.commandId, query),
    }),
    route({
      id: 'commands.delete',
      method: 'DELETE',
      path: '/boxes/:id/commands/:commandId',
      atOwnerOf: 'id',
      summary: 'Delete a command and its output',
      description: 'Deletes the record only. A running command continues.',
      request: { params: commandParams },
      access: write,
      responses: { 204: null },
      handler: ({ actor, params }) => commands.remove(actor, params.id, params.commandId),
    }),
    route({
      id: 'commands.deleteAll',
      method: 'DELETE',
      path: '/boxes/:id/commands',
      atOwnerOf: 'id',
      summary: 'Delete all commands of a box',
      description: 'Deletes the records and their output. Running commands continue.',
      request: { params: boxParams },
      access: write,
      responses: { 200: deleteCommandsResponseSchema },
      handler: async ({ actor, params }) => ({ deleted: await commands.removeAll(actor, params.id) }),
    }),
  ]
}
