// The routes of the command history (spec §4.4). A limited key needs Boxes: Write for each of them, reads included.
import { z } from 'zod'
import {
  commandAnswer,
  commandList,
  commandListQuery,
  commandOutput,
  commandOutputQuery,
  commandsDeleted,
} from '../../shared/api/commands.ts'
import { type Route, route } from '../http/route.ts'
import type { CommandHistory } from './service.ts'

const access = { area: 'boxes', level: 'write' } as const
const ofBox = z.object({ id: z.uuid() })
const ofCommand = ofBox.extend({ commandId: z.string() })

export function commandRoutes({ commands }: { commands: CommandHistory }): Route[] {
  return [
    route({
      method: 'GET',
      path: '/boxes/:id/commands',
      summary: "A page of the box's commands, newest first; readable while the box is paused",
      request: { params: ofBox, query: commandListQuery },
      access,
      answers: { 200: commandList },
      handle: ({ actor, params, query }) => commands.list(actor, params.id, query),
    }),
    route({
      method: 'GET',
      path: '/boxes/:id/commands/:commandId',
      summary: 'One command: who ran it, and what came of it',
      request: { params: ofCommand },
      access,
      answers: { 200: commandAnswer },
      handle: async ({ actor, params }) => ({
        command: await commands.get(actor, params.id, params.commandId),
      }),
    }),
    route({
      method: 'GET',
      path: '/boxes/:id/commands/:commandId/output',
      summary: 'A page of what the command wrote: repeat with offset = nextOffset until done',
      request: { params: ofCommand, query: commandOutputQuery },
      access,
      answers: { 200: commandOutput },
      handle: ({ actor, params, query }) => commands.output(actor, params.id, params.commandId, query),
    }),
    route({
      method: 'DELETE',
      path: '/boxes/:id/commands/:commandId',
      summary: 'Delete one record and its output; the command itself goes on',
      request: { params: ofCommand },
      access,
      answers: { 204: null },
      handle: ({ actor, params }) => commands.remove(actor, params.id, params.commandId),
    }),
    route({
      method: 'DELETE',
      path: '/boxes/:id/commands',
      summary: 'Delete every record of the box',
      request: { params: ofBox },
      access,
      answers: { 200: commandsDeleted },
      handle: async ({ actor, params }) => ({ deleted: await commands.removeAll(actor, params.id) }),
    }),
  ]
}
