// The files of the boxes that are open in this tab: their requests, uploads and unsaved texts.

import { type Signal, signal } from '@preact/signals'
import { createFiles, type Files } from '../api/files.ts'
import { getBoxClient } from './box-clients.ts'
import { getClient } from './live.ts'
import { resolveUrl } from './navigation.ts'
import type { Draft } from './text-edits.ts'
import { addUnsentCheck } from './unsent.ts'
import { createUploads, isActive, type Upload, type Uploads } from './uploads.ts'

export type BoxFiles = {
  files: Files
  uploads: Uploads<File>
  /** The uploads continue while another page is shown. */
  uploadList: Signal<readonly Upload[]>
  /** The unsaved text of a file; null: there is none. */
  getDraft(path: string): Draft | null
  setDraft(path: string, draft: Draft | null): void
}

const opened = new Map<string, BoxFiles>()
const drafts = new Map<string, Draft>()
addUnsentCheck(hasUnsaved)

export function getBoxFiles(boxId: string): BoxFiles {
  const existing = opened.get(boxId)
  if (existing !== undefined) return existing
  const files = createFiles(getBoxClient(boxId))
  const uploadList = signal<readonly Upload[]>([])
  const keyOf = (path: string) => `${boxId} ${path}`
  const created: BoxFiles = {
    files,
    uploadList,
    uploads: createUploads<File>({
      upload: files.upload,
      exists: async (path) => (await files.find(path)) !== null,
      makeDirectory: (path) => files.makeDirectory(path, true),
      wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      onChange(uploads) {
        uploadList.value = uploads
      },
    }),
    getDraft: (path) => drafts.get(keyOf(path)) ?? null,
    setDraft(path, draft) {
      if (draft === null) drafts.delete(keyOf(path))
      else drafts.set(keyOf(path), draft)
    },
  }
  if (opened.size === 0) addEventListener('beforeunload', warn)
  opened.set(boxId, created)
  return created
}

/** Whether an upload is in progress, or a text is not saved. */
function hasUnsaved(): boolean {
  const isUploading = [...opened.values()].some(({ uploadList }) => uploadList.value.some(isActive))
  return isUploading || drafts.size > 0
}

/** The browser asks before the document is closed. */
function warn(event: Event): void {
  if (hasUnsaved()) event.preventDefault()
}

/** Starts a download to disk. Rejects with BoxwoodError. */
export async function startDownload(boxId: string, path: string): Promise<void> {
  const { url } = await getClient().createDownloadLink(boxId, path)
  const link = document.createElement('a')
  // A failed download does not replace the page.
  link.download = ''
  link.href = resolveUrl(url.replace(/^\//, '')).href
  link.click()
}
