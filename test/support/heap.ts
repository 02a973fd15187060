// Measures the heap of this process after garbage collection.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

/** The used heap in bytes. */
export async function measureHeapBytes(): Promise<number> {
  // Several rounds, because finalizers make more objects collectable.
  for (let i = 0; i < 4; i++) {
    collectGarbage()
    await new Promise(setImmediate)
  }
  return process.memoryUsage().heapUsed
}
