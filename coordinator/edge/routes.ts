// All edge routes.
import { type Route, withTag } from '../http/route.ts'
import { attachRoutes, createAttachmentRelay } from './attach.ts'
import type { ConnectToPort } from './connect-to-port.ts'
import type { EdgeContext } from './context.ts'
import { desktopRoutes } from './desktop.ts'
import { directoryRoutes } from './directories.ts'
import { execRoutes } from './exec.ts'
import { fileRoutes } from './files.ts'
import { liveProcessRoutes } from './live-processes.ts'
import { portRoutes } from './ports.ts'
import { processRoutes } from './processes.ts'
import { promptStreamRoutes } from './prompt-streams.ts'
import { promptRoutes } from './prompts.ts'
import { createConnectionRelay } from './relay-connection.ts'
import { streamRoutes } from './stream.ts'
import { terminalRoutes } from './terminal.ts'

export function edgeRoutes(context: EdgeContext, connectToPort: ConnectToPort): Route[] {
  const relay = createAttachmentRelay(context)
  const connectionRelay = createConnectionRelay(context)
  return [
    ...withTag('Commands', [
      ...execRoutes(context),
      ...processRoutes(context),
      ...streamRoutes(context),
      ...attachRoutes(context, relay),
    ]),
    ...withTag('Processes', liveProcessRoutes(context)),
    ...withTag('Terminals', terminalRoutes(context, relay)),
    ...withTag('Ports', portRoutes(context, connectToPort, connectionRelay)),
    ...withTag('Desktop', desktopRoutes(context, connectionRelay)),
    ...withTag('Files', [...fileRoutes(context), ...directoryRoutes(context)]),
    ...withTag('Prompts', [...promptRoutes(context), ...promptStreamRoutes(context)]),
  ]
}
