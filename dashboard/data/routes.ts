// The pages of the dashboard by their paths, relative to the base of the document.
import type { Box } from '../../shared/api/boxes.ts'

/** The pages of a box with their labels. */
export const BOX_TABS = {
  overview: 'Overview',
  timeline: 'Timeline',
  terminals: 'Terminals',
  commands: 'Commands',
  conversations: 'Conversations',
  files: 'Files',
  processes: 'Processes and ports',
} as const
export type BoxTab = keyof typeof BOX_TABS

/** The pages of the workspace with their labels. */
export const WORKSPACE_PAGES = {
  prompts: 'Prompts',
  snapshots: 'Snapshots',
  environments: 'Environments',
  secrets: 'Secrets',
  images: 'Images',
  machines: 'Machines',
  aws: 'AWS roles',
  keys: 'API keys',
  members: 'Members',
  policies: 'Policies',
  audit: 'Audit log',
  billing: 'Billing',
  sessions: 'Sessions',
  settings: 'Settings',
} as const
export type WorkspacePage = keyof typeof WORKSPACE_PAGES

export type Route =
  | { page: 'boxes' }
  /** `name` may be the id of the box. */
  | { page: 'box'; name: string; tab: BoxTab }
  | { page: 'workspace'; name: WorkspacePage }
  | { page: 'unknown' }

/** @param path without a leading slash and without its query, such as boxes/fig */
export function parseRoute(path: string): Route {
  const [root = '', name = '', tab = 'overview', ...rest] = path.replace(/\/$/, '').split('/')
  if (root === '' || (root === 'boxes' && name === '')) return { page: 'boxes' }
  if (root === 'workspace')
    return isKeyOf(WORKSPACE_PAGES, name) && tab === 'overview'
      ? { page: 'workspace', name }
      : { page: 'unknown' }
  const decoded = decode(name)
  if (root !== 'boxes' || decoded === null || rest.length > 0) return { page: 'unknown' }
  return isKeyOf(BOX_TABS, tab) ? { page: 'box', name: decoded, tab } : { page: 'unknown' }
}

export const isKeyOf = <Keys extends object>(keys: Keys, text: string): text is keyof Keys & string =>
  Object.hasOwn(keys, text)

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** No name of a box is a UUID. */
export const isBoxId = (text: string): boolean => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)

/** The text that identifies the box in paths and commands. The name of a deleted box may be that of another one. */
export const getBoxKey = ({ id, hostname, observedState }: Box): string =>
  observedState === 'terminated' ? id : hostname

/** Relative to the base of the document. */
export const formatBoxPath = (nameOrId: string, tab: BoxTab = 'overview'): string =>
  `boxes/${encodeURIComponent(nameOrId)}${tab === 'overview' ? '' : `/${tab}`}`

export const formatCommandPath = (boxNameOrId: string, commandId: string): string =>
  `${formatBoxPath(boxNameOrId, 'commands')}?${new URLSearchParams({ command: commandId })}`

export const formatConversationPath = (boxName: string, conversationId: string): string =>
  `${formatBoxPath(boxName, 'conversations')}?${new URLSearchParams({ conversation: conversationId })}`
