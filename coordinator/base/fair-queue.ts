// Limits how many functions run at the same time, for work that all workspaces share. What waits is chosen in turn from its groups,
// such as workspaces: one that has much to do does not delay the others.

export type FairQueue = {
  /** Runs the function when there is a slot. Its group gets a slot before groups that have more running functions. */
  run<Result>(group: string, fn: () => Result | Promise<Result>): Promise<Result>
  /** Rejects what waits with the error. */
  clear(error: Error): void
  /** Functions that wait. */
  readonly waiting: number
}

/** Runs a function when there is a slot. */
export type RunLimited = <Result>(fn: () => Result | Promise<Result>) => Promise<Result>

type Task = { start(): void; reject(error: Error): void }

export function createFairQueue(concurrency: number): FairQueue {
  /** By group, in the order in which groups have begun to wait, or were served last. */
  const waiting = new Map<string, Task[]>()
  const runningByGroup = new Map<string, number>()
  let running = 0

  function startNext(): void {
    if (running >= concurrency) return
    const groups = [...waiting.keys()]
    const count = (group: string) => runningByGroup.get(group) ?? 0
    const [first = ''] = groups
    const next = groups.reduce((best, group) => (count(group) < count(best) ? group : best), first)
    const tasks = waiting.get(next)
    const task = tasks?.shift()
    if (tasks === undefined || task === undefined) return
    waiting.delete(next)
    if (tasks.length > 0) waiting.set(next, tasks)
    task.start()
  }

  async function runNow<Result>(group: string, fn: () => Result | Promise<Result>): Promise<Result> {
    try {
      return await fn()
    } finally {
      running -= 1
      const left = (runningByGroup.get(group) ?? 1) - 1
      if (left > 0) runningByGroup.set(group, left)
      else runningByGroup.delete(group)
      startNext()
    }
  }

  return {
    run(group, fn) {
      return new Promise((resolve, reject) => {
        const start = () => {
          running += 1
          runningByGroup.set(group, (runningByGroup.get(group) ?? 0) + 1)
          runNow(group, fn).then(resolve, reject)
        }
        const tasks = waiting.get(group) ?? []
        tasks.push({ start, reject })
        waiting.set(group, tasks)
        startNext()
      })
    },
    clear(error) {
      const tasks = [...waiting.values()].flat()
      waiting.clear()
      for (const task of tasks) task.reject(error)
    },
    get waiting() {
      return [...waiting.values()].reduce((sum, tasks) => sum + tasks.length, 0)
    },
  }
}
