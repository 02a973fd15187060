// What this process holds on to: its heap without the garbage.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

/** In bytes, after what can be collected was. */
export async function heapBytes(): Promise<number> {
  for (let i = 0; i < 4; i++) {
    collect()
    await new Promise(setImmediate)
  }
  return process.memoryUsage().heapUsed
}
