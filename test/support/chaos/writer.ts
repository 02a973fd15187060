// The command of the cutting test: numbered lines and binary noise in blocks, and what both must hash to.
import { createHash, type Hash } from 'node:crypto'

const LINES_A_BLOCK = 65_536
const NOISE_A_BLOCK = 64 * 1024
const PAGE = 4096
export const NOISE_BYTES = 1024 * 1024
export const EXIT_CODE = 37

/** A line of 16 bytes for each number: 1 MiB a block. */
export const STDOUT_A_BLOCK = LINES_A_BLOCK * 16

/** Where in the noise file a block's piece begins, in pages of 4 KiB. */
const noisePage = (block: number): number => (block * 7) % ((NOISE_BYTES - NOISE_A_BLOCK) / PAGE)

/**
 * Shell text that writes `blocks` blocks, one every `paceSeconds`; the last `held` only when the file `finish` is there.
 * It needs the file `noise` in its folder.
 */
export const writerCommand = (blocks: number, held: number, paceSeconds: number): string => `
b=0
while [ $b -lt ${blocks} ]; do
  while [ $b -ge ${blocks - held} ] && [ ! -e finish ]; do sleep 0.05; done
  seq -f %015.0f $((b * ${LINES_A_BLOCK} + 1)) $(((b + 1) * ${LINES_A_BLOCK}))
  dd if=noise bs=${PAGE} skip=$((b * 7 % ${(NOISE_BYTES - NOISE_A_BLOCK) / PAGE})) count=${NOISE_A_BLOCK / PAGE} status=none >&2
  b=$((b + 1))
  sleep ${paceSeconds}
done
exit ${EXIT_CODE}`

/** SHA-256 of what it writes, and the end of its standard output. */
export function expectedOutput(
  blocks: number,
  noise: Buffer,
): { stdout: string; stderr: string; lastBlock: Buffer } {
  const stdout = createHash('sha256')
  const stderr = createHash('sha256')
  let lastBlock: Buffer = Buffer.alloc(0)
  for (let block = 0; block < blocks; block++) {
    lastBlock = linesOf(block)
    stdout.update(lastBlock)
    addNoise(stderr, noise, block)
  }
  return { stdout: stdout.digest('hex'), stderr: stderr.digest('hex'), lastBlock }
}

function linesOf(block: number): Buffer {
  const first = block * LINES_A_BLOCK + 1
  const lines = Array.from({ length: LINES_A_BLOCK }, (_, line) => String(first + line).padStart(15, '0'))
  return Buffer.from(`${lines.join('\n')}\n`)
}

function addNoise(hash: Hash, noise: Buffer, block: number): void {
  const from = noisePage(block) * PAGE
  hash.update(noise.subarray(from, from + NOISE_A_BLOCK))
}
