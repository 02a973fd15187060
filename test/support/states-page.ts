// Draws docs/states.md from the data of the state machine. `npm run docs:states` writes the page.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ALLOWED_TRANSITIONS, OP_DEFINITIONS } from '../../coordinator/boxes/lifecycle/transitions.ts'
import type { JobOp, ObservedState } from '../../shared/api/boxes.ts'
import { PROJECT_DIR } from './project.ts'

export const STATES_PAGE = join(PROJECT_DIR, 'docs/states.md')

/** What each state means, and what its reader can do. */
const STATES: Record<ObservedState, [meaning: string, action: string]> = {
  requested: ['The box is stored, and nothing of it exists yet.', 'wait'],
  provisioning: ['The machine of the box is created, with the files of its snapshot if it has one.', 'wait'],
  bootstrapping: [
    'The machine starts, and its agent connects. An enrolled machine is in this state until its agent has connected.',
    'wait',
  ],
  running: ['The box runs and is connected.', 'use the box'],
  suspending: ['The processes of the box are frozen or terminated.', 'wait'],
  suspended: [
    'The box does not run. `suspendedAs` says what happened to its processes: `frozen`: they keep their memory; `stopped`: they were terminated.',
    '`box start` wakes the box; a command wakes it too',
  ],
  waking: ['The box continues, or its machine starts.', 'wait'],
  deep_sleep: [
    'The files of the box are in a compressed archive, and its disk is free.',
    '`box start` wakes the box; it takes longer than for a suspended box',
  ],
  resizing: ['The machine restarts with the limits of the new tier.', 'wait'],
  migrating: [
    'The files of the box are moved or copied to another region, where its machine then starts.',
    'wait; if the move fails, the box continues in its region',
  ],
  degraded: [
    'The agent of the box is not connected. Its machine is started again if it has stopped.',
    'wait; if this persists, `box stop` and `box start` restart the machine. Of an enrolled machine: check that it runs and reaches the coordinator',
  ],
  provision_failed: [
    'The box could not be created. The last event has the reason.',
    '`box rm`, then create another box',
  ],
  terminating: ['The machine, the files and the archive of the box are removed.', 'wait'],
  terminated: ['Nothing of the box is left but its history.', ''],
}

const states = Object.keys(ALLOWED_TRANSITIONS) as ObservedState[]
const ops = Object.entries(OP_DEFINITIONS) as [JobOp, (typeof OP_DEFINITIONS)[JobOp]][]

/** The operations that make the transition. */
function labelOf(from: ObservedState, to: ObservedState): string {
  if (to === 'degraded') return 'agent lost'
  const runsIn = (op: JobOp, state: ObservedState) =>
    OP_DEFINITIONS[op].stages.some((stage) => stage.state === state)
  const within = ops.filter(([op]) => runsIn(op, from) && runsIn(op, to))
  const ending = ops.filter(
    ([op, { finalState, otherFinalStates = [] }]) =>
      runsIn(op, from) && [finalState, ...otherFinalStates].includes(to),
  )
  const failing = ops.filter(([op, { failureState }]) => runsIn(op, from) && failureState === to)
  const beginning = ops.filter(([op]) => runsIn(op, to))
  if (to === 'provision_failed') return failing.map(([op]) => `${op} failed`).join(', ')
  const makers = [within, ending, beginning].find((found) => found.length > 0) ?? []
  return makers.map(([op]) => op).join(', ')
}

function drawDiagram(): string {
  const live = states.filter((state) => ALLOWED_TRANSITIONS[state].includes('terminating'))
  const edges = (from: ObservedState, indent: string) =>
    ALLOWED_TRANSITIONS[from]
      .filter((to) => to !== 'terminating')
      .map((to) => `${indent}${from} --> ${to}: ${labelOf(from, to)}`)
  return [
    'stateDiagram-v2',
    '  [*] --> requested: create',
    '  state live {',
    ...live.flatMap((state) => edges(state, '    ')),
    '  }',
    '  live --> terminating: delete',
    ...states.filter((state) => !live.includes(state)).flatMap((state) => edges(state, '  ')),
    '  terminated --> [*]',
  ].join('\n')
}

function drawTable(): string {
  const rows = states.map((state) => {
    const [meaning, action] = STATES[state]
    return `| \`${state}\` | ${meaning} | ${action} |`
  })
  return ['| state | meaning | what to do |', '|---|---|---|', ...rows].join('\n')
}

function drawOperations(): string {
  const rows = ops.map(([op, { stages }]) => {
    const steps = stages.map(
      ({ step, inDesiredRegion }) => `\`${step}\`${inDesiredRegion ? ' (new region)' : ''}`,
    )
    return `| \`${op}\` | ${steps.join(', ')} |`
  })
  return ['| operation | steps |', '|---|---|', ...rows].join('\n')
}

const SECTIONS = {
  diagram: () => `\`\`\`mermaid\n${drawDiagram()}\n\`\`\``,
  states: drawTable,
  operations: drawOperations,
} as const

/** The page with its generated sections replaced. Throws when a section has no markers. */
export function renderStatesPage(page: string): string {
  let rendered = page
  for (const [name, draw] of Object.entries(SECTIONS)) {
    const section = new RegExp(`(<!-- begin ${name} -->\n)[\\s\\S]*?(\n<!-- end ${name} -->)`)
    if (!section.test(rendered)) throw new Error(`docs/states.md has no markers of the section ${name}.`)
    rendered = rendered.replace(section, (_match, begin: string, end: string) => `${begin}${draw()}${end}`)
  }
  return rendered
}

if (import.meta.main) writeFileSync(STATES_PAGE, renderStatesPage(readFileSync(STATES_PAGE, 'utf8')))
