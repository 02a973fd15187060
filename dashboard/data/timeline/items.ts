// What happened in a box, from four sources, as items on one time axis.

import type { AuditEvent } from '../../../shared/api/audit.ts'
import type { BoxEvent } from '../../../shared/api/boxes.ts'
import type { Command } from '../../../shared/api/commands.ts'
import type { Run } from '../../../shared/api/prompts.ts'
import type { Snapshot } from '../../../shared/api/snapshots.ts'
import { formatResult } from '../command-list.ts'
import { formatState } from '../items.ts'
import { formatDuration } from '../local-time.ts'
import { formatActor, formatUser, type PersonViewer } from '../people.ts'
import { formatCommandPath, formatConversationPath } from '../routes.ts'
import { formatBytes, formatGb } from '../sizes.ts'
import { overlaps, type Span } from './lanes.ts'
import type { Range } from './range.ts'

export type ItemKind = 'state' | 'command' | 'prompt' | 'snapshot'
export type Tone = 'good' | 'bad' | 'active' | 'quiet'

/** The texts of boxes and users are as they were sent: views make their control characters visible. */
export type TimelineItem = Span & {
  kind: ItemKind
  title: string
  /** How it ended, or its state. */
  result: string
  tone: Tone
  details: { name: string; text: string }[]
  /** The page that shows the whole item; null: none does. */
  link: { label: string; path: string } | null
}

export type Sources = {
  events: readonly BoxEvent[]
  /** Requests that have changed the state earlier. */
  requests: readonly AuditEvent[]
  commands: readonly Command[]
  runs: readonly Run[]
  snapshots: readonly Snapshot[]
}

export type Viewer = PersonViewer & { now: number; boxName: string }

export const KIND_LABELS: Record<ItemKind, string> = {
  state: 'State',
  command: 'Commands',
  prompt: 'Prompts',
  snapshot: 'Snapshots',
}

/** The items of each kind that overlap the range, ascending. */
export function selectItems(
  sources: Sources,
  range: Range,
  viewer: Viewer,
): Record<ItemKind, TimelineItem[]> {
  const select = (items: TimelineItem[]) =>
    items.filter((item) => overlaps(item, range)).sort((a, b) => a.from - b.from)
  return {
    state: select([
      ...createStateItems(sources.events, viewer),
      ...sources.requests.map((request) => createRequestItem(request, viewer)),
    ]),
    command: select(sources.commands.map((command) => createCommandItem(command, viewer))),
    prompt: select(sources.runs.map((run) => createPromptItem(run, viewer))),
    snapshot: select(sources.snapshots.map(createSnapshotItem)),
  }
}

/** Newest first. */
export const mergeItems = (items: Record<ItemKind, readonly TimelineItem[]>): TimelineItem[] =>
  Object.values(items)
    .flat()
    .sort((a, b) => b.from - a.from)

const STATE_TONES: Record<string, Tone> = {
  running: 'good',
  degraded: 'bad',
  provision_failed: 'bad',
  suspended: 'quiet',
  deep_sleep: 'quiet',
  terminated: 'quiet',
}

/** A state lasts until the next change; the current one has no end. */
function createStateItems(events: readonly BoxEvent[], viewer: Viewer): TimelineItem[] {
  const sorted = events.map((event) => ({ event, at: Date.parse(event.at) })).sort((a, b) => a.at - b.at)
  return sorted.map(({ event, at }, index) => {
    const to = sorted[index + 1]?.at ?? (event.toState === 'terminated' ? at : null)
    return {
      id: event.id,
      kind: 'state',
      from: at,
      to,
      title: formatState(event.toState),
      result: event.reason,
      tone: STATE_TONES[event.toState] ?? 'active',
      details: [
        ...(event.fromState === null ? [] : [{ name: 'Before', text: formatState(event.fromState) }]),
        { name: 'Reason', text: event.reason },
        ...(event.code === null ? [] : [{ name: 'Code', text: event.code }]),
        { name: 'By', text: formatActor(event.actor, viewer) },
        { name: 'Lasted', text: formatLength(at, to, viewer.now) },
      ],
      link: null,
    }
  })
}

/** The audit log has the time of a request, and not how long the state lasted. */
function createRequestItem({ id, at, kind, actorUserId }: AuditEvent, viewer: Viewer): TimelineItem {
  return {
    id: `audit_${id}`,
    kind: 'state',
    from: Date.parse(at),
    to: Date.parse(at),
    title: kind,
    result: 'from the audit log',
    tone: 'quiet',
    details: [{ name: 'By', text: formatUser(actorUserId, viewer) }],
    link: null,
  }
}

function createCommandItem(command: Command, viewer: Viewer): TimelineItem {
  const from = Date.parse(command.startedAt)
  const to = command.finishedAt === null ? null : Date.parse(command.finishedAt)
  const { userId, tokenId } = command.actor
  const result = formatResult(command)
  return {
    id: command.id,
    kind: 'command',
    from,
    to,
    title: command.command ?? '(not stored)',
    result,
    tone: command.status === 'running' ? 'active' : command.exitCode === 0 ? 'good' : 'bad',
    details: [
      { name: 'Result', text: result },
      { name: 'Duration', text: formatLength(from, to, viewer.now) },
      { name: 'By', text: `${formatUser(userId, viewer)}${tokenId === null ? '' : ', with an API key'}` },
      ...(command.cwd === null ? [] : [{ name: 'Directory', text: command.cwd }]),
      {
        name: 'Output',
        text: `${formatBytes(command.stdoutBytes)} stdout, ${formatBytes(command.stderrBytes)} stderr`,
      },
    ],
    link: { label: 'Open the command', path: formatCommandPath(viewer.boxName, command.id) },
  }
}

function createPromptItem(run: Run, { boxName }: Viewer): TimelineItem {
  const from = Date.parse(run.startedAt)
  const to = run.finishedAt === null ? null : Date.parse(run.finishedAt)
  return {
    id: run.id,
    kind: 'prompt',
    from,
    to,
    title: run.prompt,
    result: `${run.provider}, ${run.status}`,
    tone: run.status === 'running' ? 'active' : run.status === 'done' ? 'good' : 'bad',
    details: [
      { name: 'Coding agent', text: [run.provider, run.model].filter(Boolean).join(', ') },
      { name: 'Result', text: run.status },
      ...(run.error === null ? [] : [{ name: 'Error', text: run.error }]),
      { name: 'Events', text: String(run.eventCount) },
    ],
    link: { label: 'Open the conversation', path: formatConversationPath(boxName, run.conversationId) },
  }
}

function createSnapshotItem(snapshot: Snapshot): TimelineItem {
  const from = Date.parse(snapshot.createdAt)
  return {
    id: snapshot.id,
    kind: 'snapshot',
    from,
    to: from,
    title: snapshot.name,
    result: snapshot.status,
    tone: snapshot.status === 'failed' ? 'bad' : 'active',
    details: [
      { name: 'Kind', text: snapshot.kind },
      { name: 'Status', text: snapshot.status },
      ...(snapshot.error === null ? [] : [{ name: 'Error', text: snapshot.error }]),
      ...(snapshot.sizeGb === null ? [] : [{ name: 'Size', text: formatGb(snapshot.sizeGb) }]),
    ],
    link: { label: 'Open the snapshots', path: 'workspace/snapshots' },
  }
}

const formatLength = (from: number, to: number | null, now: number): string =>
  to === null ? `${formatDuration(now - from)} so far` : formatDuration(to - from)
