// The state of a machine that has never been started.
import type { Machine } from './machine-file.ts'

export const emptyMachine = (boxId: string, uid: number | null): Machine => ({
  boxId,
  uid,
  level: null,
  isolation: null,
  init: null,
  cgroups: [],
})
