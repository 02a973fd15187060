// Reads the spool of a stopped box through Incus. The box controls these files: their number and size are limited, and links are
// not followed.
import { parseSegmentName, SPOOL_DIRECTORY } from '../../../shared/report-spool.ts'
import { MAX_SEGMENT_BYTES, MAX_SPOOL_BYTES, type OnSkip } from '../parts/read-spool.ts'
import type { InstanceFiles } from './files.ts'

const MAX_SEGMENTS = 200

/** Yields the content of the segments in the order of their names, of each at most the size that the agent writes. */
export async function* readSpool(
  files: Pick<InstanceFiles, 'stat' | 'list' | 'read'>,
  stateDir: string,
  onSkip: OnSkip,
): AsyncGenerator<Buffer, void, undefined> {
  const dir = `${stateDir}/${SPOOL_DIRECTORY}`
  for (const path of [stateDir, dir]) {
    const stats = await files.stat(path)
    if (stats === null) return
    if (stats.type !== 'directory') return onSkip(path, 'not a directory')
  }
  const names = (await files.list(dir)).filter((name) => parseSegmentName(name) !== null).sort()
  if (names.length > MAX_SEGMENTS) onSkip(dir, `the directory has more than ${MAX_SEGMENTS} segments`)
  let remainingBytes = MAX_SPOOL_BYTES
  for (const name of names.slice(0, MAX_SEGMENTS)) {
    const path = `${dir}/${name}`
    const stats = await files.stat(path)
    if (stats === null) continue
    if (stats.type !== 'file' || stats.uid !== 0) {
      onSkip(path, 'not a regular file of root')
      continue
    }
    const content = await files.read(path, MAX_SEGMENT_BYTES)
    remainingBytes -= content.length
    if (remainingBytes < 0) return onSkip(path, `the spool is larger than ${MAX_SPOOL_BYTES} bytes`)
    yield content
  }
}
