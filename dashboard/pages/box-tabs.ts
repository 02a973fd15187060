// The pages of a box, beside its overview. Each is a file of its own.
import type { ComponentType } from 'preact'
import type { Box } from '../../shared/api/boxes.ts'
import type { BoxTab } from '../data/routes.ts'
import { lazy } from '../views/lazy.tsx'

export type BoxTabProps = { box: Box }

export const BOX_TAB_PAGES: Readonly<Record<Exclude<BoxTab, 'overview'>, ComponentType<BoxTabProps>>> = {
  processes: lazy(async () => (await import('./processes.tsx')).ProcessesPage),
  timeline: lazy(async () => (await import('./timeline.tsx')).TimelinePage),
  terminals: lazy(async () => (await import('./terminals.tsx')).TerminalsPage),
  commands: lazy(async () => (await import('./commands.tsx')).CommandsPage),
  conversations: lazy(() => import('./conversations.tsx').then(({ ConversationsPage }) => ConversationsPage)),
  files: lazy(() => import('./files.tsx').then(({ FilesPage }) => FilesPage)),
}
