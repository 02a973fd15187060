// What the command palette offers: pages, boxes with their pages, and actions.
import type { Box } from '../../shared/api/boxes.ts'
import { listWorkspacePages, type PageUser } from './access.ts'
import { type Boxes, formatState, listActions } from './items.ts'
import { BOX_TABS, type BoxTab, formatBoxPath, type WorkspacePage } from './routes.ts'

export type PaletteItem = {
  id: string
  label: string
  /** What kind of item it is. */
  hint: string
  /** Other words for it, by which it is found. */
  words?: string
} & ({ target: string } | { action: 'wake' | 'suspend'; boxId: string } | { action: 'signOut' })

/** What people call the pages, too. */
const PAGE_WORDS: Record<WorkspacePage, string> = {
  prompts: 'conversations agents chat',
  snapshots: 'backup restore template',
  environments: 'variables repositories setup',
  secrets: 'key token password credentials',
  images: 'docker oci container',
  machines: 'server host enroll join laptop',
  aws: 'cloud iam credentials',
  keys: 'token api access',
  members: 'team people users invite role',
  policies: 'limits rules',
  audit: 'history events who deleted',
  billing: 'cost price spend money usage invoice',
  sessions: 'login device sign out',
  settings: 'profile name theme retention',
}

/** More do not help to choose. */
const MAX_ITEMS = 50

/** Begins with the pages, then the boxes by name. */
export function* listPaletteItems(boxes: Boxes, session: PageUser): Generator<PaletteItem> {
  yield { id: 'create', label: 'Create a box', hint: 'action', target: './?create=', words: 'new' }
  yield { id: 'boxes', label: 'Boxes', hint: 'page', target: './' }
  for (const [page, label] of listWorkspacePages(session))
    yield {
      id: page,
      label,
      hint: 'page of the workspace',
      target: `workspace/${page}`,
      words: PAGE_WORDS[page],
    }
  const sorted = [...boxes.values()].sort((a, b) => (a.hostname < b.hostname ? -1 : 1))
  for (const box of sorted) {
    const { id, hostname, observedState } = box
    yield { id, label: hostname, hint: `box, ${formatState(observedState)}`, target: formatBoxPath(hostname) }
  }
  for (const box of sorted) yield* listBoxItems(box)
  yield { id: 'sign-out', label: 'Sign out', hint: 'action', action: 'signOut' }
}

function* listBoxItems(box: Box): Generator<PaletteItem> {
  const { id, hostname } = box
  for (const [tab, label] of Object.entries(BOX_TABS) as [BoxTab, string][])
    if (tab !== 'overview')
      yield {
        id: `${id}-${tab}`,
        label: `${hostname}: ${label}`,
        hint: 'page of the box',
        target: formatBoxPath(hostname, tab),
      }
  const actions = listActions(box)
  if (actions.includes('wake'))
    yield { id: `${id}-wake`, label: `Wake ${hostname}`, hint: 'action', action: 'wake', boxId: id }
  if (actions.includes('suspend'))
    yield { id: `${id}-suspend`, label: `Suspend ${hostname}`, hint: 'action', action: 'suspend', boxId: id }
}

/** Items whose label or words contain each word of the text; those whose label begins with the text come first. */
export function findPaletteItems(items: Iterable<PaletteItem>, text: string): PaletteItem[] {
  const typed = text.trim().toLowerCase()
  const words = typed.split(/\s+/).filter(Boolean)
  const first: PaletteItem[] = []
  const others: PaletteItem[] = []
  for (const item of items) {
    const label = item.label.toLowerCase()
    const found = `${label} ${item.words ?? ''}`
    if (!words.every((word) => found.includes(word))) continue
    if (label.startsWith(typed)) first.push(item)
    else if (others.length < MAX_ITEMS) others.push(item)
    if (first.length === MAX_ITEMS) break
  }
  return [...first, ...others].slice(0, MAX_ITEMS)
}
