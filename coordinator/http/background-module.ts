// Work that a response does not wait for.
import { createBackgroundTasks } from '../base/background-tasks.ts'
import type { Module, ModuleBase } from './module.ts'

export function backgroundModule({ log }: ModuleBase) {
  const background = createBackgroundTasks(log)
  return {
    services: { background },
    close: { name: 'finish the background tasks', run: background.close },
  } satisfies Module
}
