// Measures the heap of this process after garbage collection.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

/** The used heap in bytes. */
export async function measureHeapBytes(): Promise<number> {
  await collectAllGarbage()
  return process.memoryUsage().heapUsed
}

/** The heap and the buffers outside of it that the program still references, in bytes. */
export async function measureReferencedBytes(): Promise<number> {
  await collectAllGarbage()
  // `external` includes the buffers.
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

async function collectAllGarbage(): Promise<void> {
  // Several rounds, because finalizers make more objects collectable.
  for (let i = 0; i < 4; i++) {
    collectGarbage()
    await new Promise(setImmediate)
  }
}
