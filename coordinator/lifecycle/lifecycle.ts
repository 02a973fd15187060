// The life of boxes on this coordinator, put together: reconciling, watching, waiting, stopping.
import { createPlaces } from './places.ts'
import { createReconciler, type ReconcilerOptions } from './reconciler.ts'
import { suspendAll } from './suspend-local.ts'
import { createWaiter, type WaitUntilRunning } from './wait.ts'
import { watchBoxes } from './watch.ts'

export type LifecycleOptions = Omit<ReconcilerOptions, 'onMachine'> & {
  /** How many machines are worked on at once; 8 unless told. */
  machines?: number
  /** How long the agent of a running box may be away before its machine is looked at; 60 s unless told. */
  lostMs?: number
}

export type Lifecycle = {
  /** Goes on with what is unfinished, and looks at each machine that should be running. */
  start(): Promise<void>
  /** A box's desired state or job was written. */
  poke(boxId: string): void
  waitUntilRunning: WaitUntilRunning
  /**
   * Closes, stops every box's machine and has it observed suspended; all come back with the next start.
   * @returns the names of the boxes that were suspended.
   */
  suspendAllLocal(reason: string): Promise<string[]>
  /** Ends after the steps that run now; machines and jobs stay as they are. */
  close(): Promise<void>
}

export function createLifecycle(options: LifecycleOptions): Lifecycle {
  const { db, tunnels, machines = 8, lostMs = 60_000 } = options
  const onMachine = createPlaces(machines)
  const reconciler = createReconciler({ ...options, onMachine })
  const { poke, onChange } = reconciler
  const watch = watchBoxes({ ...options, onMachine, poke, lostMs })

  async function close(): Promise<void> {
    watch.close()
    await reconciler.close()
  }

  return {
    poke,
    waitUntilRunning: createWaiter({ db, tunnels, onChange }),
    async start() {
      await reconciler.start()
      await watch.start()
    },
    async suspendAllLocal(reason) {
      await close()
      return suspendAll({ ...options, onMachine }, reason)
    },
    close,
  }
}
