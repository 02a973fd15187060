// The life of a box.
import { z } from 'zod'
import type { Box } from '../../client/boxes/box.ts'
import type { Call, Context } from '../context.ts'
import { allows, defineTool, type Grants, type ToolFactory } from '../tool.ts'
import { waitAtMost } from '../wait-at-most.ts'
import { boxField } from './fields.ts'

const ACTIONS = ['wake', 'suspend', 'snapshot', 'fork', 'delete'] as const
type Action = (typeof ACTIONS)[number]

const EFFECTS: Readonly<Record<Action, string>> = {
  wake: 'wake starts a suspended box',
  suspend: 'suspend stops it, and keeps its files',
  snapshot: 'snapshot stores its files',
  fork: 'fork creates a box with a copy of its files',
  delete: 'delete removes it with its files, for ever',
}

function listActions(grants: Grants): Action[] {
  const allowed: Record<Action, boolean> = {
    wake: allows(grants, 'run'),
    suspend: allows(grants, 'write'),
    snapshot: allows(grants, 'write'),
    fork: grants.canCreate,
    delete: grants.canDelete,
  }
  return ACTIONS.filter((action) => allowed[action])
}

export const createChangeBox: ToolFactory = (grants) => {
  const actions = listActions(grants)
  const [first, ...others] = actions
  if (first === undefined) return null
  const isDestructive = actions.includes('suspend') || actions.includes('delete')
  return defineTool({
    name: 'change_box',
    title: 'Change the state of a box',
    description: `Changes a box: ${actions.map((action) => EFFECTS[action]).join('; ')}. Waits up to 45 seconds; a change continues after that.`,
    inputSchema: z.strictObject({
      box: boxField,
      action: z.enum([first, ...others]),
      name: z.string().min(1).optional().describe('Of the snapshot, or of the new box of a fork'),
    }),
    outputSchema: z.object({
      box: z.string(),
      action: z.string(),
      isComplete: z.boolean(),
      state: z.string(),
      created: z.string().nullable(),
    }),
    annotations: {
      readOnlyHint: false,
      destructiveHint: isDestructive,
      idempotentHint: false,
      openWorldHint: false,
    },
    async run(context, { box: name, action, name: newName }, call) {
      const box = await context.findBox(name, call)
      if (action === 'fork') return fork(context, box, newName, call)
      const { signal } = call
      const done = await waitAtMost(context.maxWaitMs, signal, (limited) =>
        change(box, action, newName, limited),
      )
      const state = action === 'delete' ? 'deleted' : (await box.refresh({ signal })).data.observedState
      const isComplete = done !== null
      const created = action === 'snapshot' ? (newName ?? box.name) : null
      const text = !isComplete
        ? `The change ${action} of box ${box.name} is in progress; the box is ${state}.`
        : created === null
          ? `The box ${box.name} is ${state}.`
          : `The snapshot ${created} of box ${box.name} is stored.`
      return { text, data: { box: box.name, action, isComplete, state, created } }
    },
  })
}

/** @returns what is complete */
async function change(
  box: Box,
  action: Exclude<Action, 'fork'>,
  name: string | undefined,
  signal: AbortSignal,
): Promise<unknown> {
  switch (action) {
    case 'wake':
      return box.wake({ signal })
    case 'suspend':
      return box.suspend({ signal })
    case 'snapshot':
      return box.snapshot({ name: name ?? box.name }, { signal })
    case 'delete':
      await box.delete({ signal })
      return action
  }
}

async function fork(context: Context, box: Box, name: string | undefined, { signal }: Call) {
  const { boxwood } = context
  signal.throwIfAborted()
  // Without the signal: an aborted request may have created the box.
  const { box: created } = await boxwood.routes.boxes.fork(box.id, name === undefined ? {} : { name })
  try {
    const copy = await boxwood.boxes.get(created.id, { signal })
    const done = await waitAtMost(context.maxWaitMs, signal, (limited) =>
      copy.waitUntilRunning({ signal: limited }),
    )
    const state = copy.data.observedState
    const next = done === null ? ` Call list_boxes with its name to see when it runs.` : ''
    return {
      text: `The box ${copy.name}, a copy of ${box.name}, is ${state}.${next}`,
      data: { box: box.name, action: 'fork', isComplete: done !== null, state, created: copy.name },
    }
  } catch (error) {
    if (signal.aborted) await boxwood.routes.boxes.delete(created.id).catch(() => undefined)
    throw error
  }
}
