// The command of the chaos test: writes numbered lines to stdout and binary data to stderr, in blocks.
import { createHash, type Hash } from 'node:crypto'

const LINES_PER_BLOCK = 65_536
const NOISE_BYTES_PER_BLOCK = 64 * 1024
const PAGE_BYTES = 4096
export const NOISE_BYTES = 1024 * 1024
export const EXIT_CODE = 37

/** 1 MiB: 16 bytes per line. */
export const STDOUT_BYTES_PER_BLOCK = LINES_PER_BLOCK * 16

/** The number of start pages in the noise file. The noise of block `b` starts at page (b · 7) modulo this number. */
const NOISE_START_PAGES = (NOISE_BYTES - NOISE_BYTES_PER_BLOCK) / PAGE_BYTES

/**
 * Returns a shell command that writes `blocks` blocks, one every `intervalSeconds`. Before the last `heldBlocks` blocks it
 * waits until the file `finish` exists. The command reads the file `noise`. Both files are in its working directory.
 */
export const createWriterCommand = (blocks: number, heldBlocks: number, intervalSeconds: number): string => `
b=0
while [ $b -lt ${blocks} ]; do
  while [ $b -ge ${blocks - heldBlocks} ] && [ ! -e finish ]; do sleep 0.05; done
  seq -f %015.0f $((b * ${LINES_PER_BLOCK} + 1)) $(((b + 1) * ${LINES_PER_BLOCK}))
  dd if=noise bs=${PAGE_BYTES} skip=$((b * 7 % ${NOISE_START_PAGES})) count=${NOISE_BYTES_PER_BLOCK / PAGE_BYTES} status=none >&2
  b=$((b + 1))
  sleep ${intervalSeconds}
done
exit ${EXIT_CODE}`

/** The SHA-256 of the command's stdout and stderr, in hex, and the last block of stdout. */
export function expectedOutput(
  blocks: number,
  noise: Buffer,
): { stdout: string; stderr: string; lastBlock: Buffer } {
  const stdout = createHash('sha256')
  const stderr = createHash('sha256')
  let lastBlock: Buffer = Buffer.alloc(0)
  for (let block = 0; block < blocks; block++) {
    lastBlock = createLines(block)
    stdout.update(lastBlock)
    updateWithNoise(stderr, noise, block)
  }
  return { stdout: stdout.digest('hex'), stderr: stderr.digest('hex'), lastBlock }
}

function createLines(block: number): Buffer {
  const first = block * LINES_PER_BLOCK + 1
  const lines = Array.from({ length: LINES_PER_BLOCK }, (_, line) => String(first + line).padStart(15, '0'))
  return Buffer.from(`${lines.join('\n')}\n`)
}

function updateWithNoise(hash: Hash, noise: Buffer, block: number): void {
  const start = ((block * 7) % NOISE_START_PAGES) * PAGE_BYTES
  hash.update(noise.subarray(start, start + NOISE_BYTES_PER_BLOCK))
}
