// The tasks that Claude Code runs in the background, such as sub-agents, in the mapper state. It reports a result for each
// turn, also while tasks are running, and begins another turn when one ends.
import { arrayAt, stringAt } from './json-fields.ts'
import type { JsonObject, MapperState } from './types.ts'

const KEY = 'tasks'
/** Bounds the state. Tasks beyond the limit are not remembered. */
const MAX_TASKS = 32
const ID_PATTERN = /^[\w.:-]{1,64}$/
const ENDED = ['completed', 'failed', 'killed', 'stopped']

/** @param line of the type `system` */
export function withBackgroundTasks(state: MapperState, line: JsonObject): MapperState {
  const known = arrayAt(state.data, KEY).filter((id) => typeof id === 'string')
  const id = stringAt(line, 'task_id')
  const others = known.filter((other) => other !== id)
  switch (stringAt(line, 'subtype')) {
    case 'background_tasks_changed':
      return withTasks(
        state,
        arrayAt(line, 'tasks').map((task) => stringAt(task, 'task_id')),
      )
    case 'task_started':
      return withTasks(state, [...others, id])
    case 'task_notification':
      return withTasks(state, others)
    case 'task_updated':
      return ENDED.includes(stringAt(line, 'patch', 'status') ?? '') ? withTasks(state, others) : state
    default:
      return state
  }
}

function withTasks(state: MapperState, ids: readonly (string | null)[]): MapperState {
  const tasks = ids.filter((id) => id !== null && ID_PATTERN.test(id)).slice(0, MAX_TASKS)
  return { ...state, hasBackgroundTasks: tasks.length > 0, data: { ...state.data, [KEY]: tasks } }
}
