// The command history (spec §4.5).

import { once } from 'node:events'
import type { Limits } from '../../base/limits.ts'
import type { BoxFinder } from '../../http/find-box.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import type { HistorySettings } from '../settings.ts'
import { type Commands, createCommands } from './commands.ts'
import { deleteCommandsOfBox } from './delete-of-box.ts'
import { commandRoutes } from './routes.ts'

const MIB = 1024 * 1024

export function commandsModule({
  config,
  db,
  clock,
  log,
  boxFinder,
}: ModuleBase & { config: HistorySettings & { limits: Limits }; boxFinder: BoxFinder }) {
  const commands: Commands = createCommands({
    db,
    clock,
    log,
    boxes: boxFinder,
    retention: {
      days: config.commandDays,
      records: config.limits.commandRecords,
      outputBytes: config.limits.commandOutputMiB * MIB,
    },
  })
  return {
    services: { commands },
    routes: withTag('Command history', commandRoutes({ commands: commands.history })),
    schedules: {
      // close() stops a deletion that is running.
      pruners: {
        commands: (signal: AbortSignal) => Promise.race([commands.prune(), once(signal, 'abort')]),
      },
    },
    deleteOfBox: deleteCommandsOfBox,
    close: { name: 'stop pruning commands', run: commands.close },
  } satisfies Module
}
