// Saves the stored output of a command as a file. The history has at most 1 MiB of a stream.

import type { OutputStream } from '../../client/boxes/output.ts'
import type { Box } from '../../shared/api/boxes.ts'
import type { Command } from '../../shared/api/commands.ts'
import { getClient } from '../data/live.ts'

/** Rejects with BoxwoodError. */
export async function downloadStoredOutput(box: Box, { id }: Command, stream: OutputStream): Promise<void> {
  const parts: Uint8Array<ArrayBuffer>[] = []
  for (let offset = 0; ; ) {
    const page = await getClient().loadCommandOutput(box.id, id, { stream, offset, encoding: 'base64' })
    parts.push(Uint8Array.from(atob(page.data), (character) => character.charCodeAt(0)))
    if (page.nextOffset >= page.size || page.nextOffset === offset) break
    offset = page.nextOffset
  }
  const url = URL.createObjectURL(new Blob(parts, { type: 'application/octet-stream' }))
  const link = document.createElement('a')
  link.href = url
  link.download = `${box.hostname}-${id}-${stream}.txt`
  link.click()
  // The browser has its own reference after the click was processed.
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
