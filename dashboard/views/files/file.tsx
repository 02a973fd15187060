// A file of a box: its text, its image, or its size.

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { BoxwoodError } from '../../../client/http/errors.ts'
import type { Box } from '../../../shared/api/boxes.ts'
import type { FileRead } from '../../../shared/api/files.ts'
import { toBoxwoodError } from '../../api/errors.ts'
import { getBoxFiles, startDownload } from '../../data/box-files.ts'
import { type FileContent, readContent } from '../../data/file-content.ts'
import { joinPath } from '../../data/files.ts'
import { quoteShell } from '../../data/quote-shell.ts'
import { formatBytes } from '../../data/sizes.ts'
import { type Draft, openText } from '../../data/text-edits.ts'
import { showHidden, showHiddenInOutput } from '../../data/visible-text.ts'
import { Command } from '../command.tsx'
import { focusHeading } from '../focus-heading.ts'
import { Problem } from '../problem.tsx'
import { Breadcrumb } from './breadcrumb.tsx'
import { TextEditor } from './text-editor.tsx'

export function FileView({ box, directory, name }: { box: Box; directory: string; name: string }) {
  const { files, getDraft } = getBoxFiles(box.id)
  const path = joinPath(directory, name)
  const read = useSignal<FileRead | null>(null)
  const error = useSignal<BoxwoodError | null>(null)
  const draft = useSignal<Draft | null>(null)

  async function attempt(run: () => Promise<void>): Promise<void> {
    error.value = null
    try {
      await run()
    } catch (reason) {
      error.value = toBoxwoodError(reason)
    }
  }
  const load = () =>
    attempt(async () => {
      read.value = await files.read(path)
      draft.value = getDraft(read.value.path)
    })
  useEffect(() => void load(), [])

  const { value } = read
  const content = value && readContent(value)
  return (
    <>
      <Breadcrumb boxName={box.hostname} path={directory} file={name} />
      <p class="tools">
        <button type="button" onClick={() => attempt(() => startDownload(box.id, path))}>
          Download
        </button>
        {draft.value === null && (
          <button type="button" onClick={() => void load()}>
            Refresh
          </button>
        )}
        {value !== null && content?.kind === 'text' && draft.value === null && (
          <button
            type="button"
            onClick={() =>
              attempt(async () => {
                draft.value = await openText(files, value.path)
              })
            }
          >
            Edit
          </button>
        )}
        {value !== null && <span>{formatBytes(value.size)}</span>}
        <Command text={`box cp ${box.hostname}:${quoteShell(path)} .`} />
      </p>
      <Problem error={error.value} />
      {draft.value !== null ? (
        <TextEditor
          box={box}
          draft={draft.value}
          onClose={() => {
            draft.value = null
            focusHeading()
            void load()
          }}
        />
      ) : (
        <Content name={name} content={content} error={error.value} />
      )}
    </>
  )
}

type ContentProps = { name: string; content: FileContent | null; error: BoxwoodError | null }

function Content({ name, content, error }: ContentProps) {
  if (content === null) {
    if (error === null) return <p>Loading the file.</p>
    return error.code === 'payload_too_large' ? (
      <p>Files of up to 1 MiB are shown here. Download this one.</p>
    ) : null
  }
  if (content.kind === 'binary') return <p>The file is neither text nor an image. Download it.</p>
  if (content.kind === 'image') return <Image name={name} content={content} />
  if (content.text === '') return <p>The file is empty.</p>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the content scrolls, also with the keyboard.
    <section class="content" tabIndex={0} aria-label={`Content of ${showHidden(name)}`}>
      <pre>{showHiddenInOutput(content.text)}</pre>
    </section>
  )
}

function Image({ name, content }: { name: string; content: Extract<FileContent, { kind: 'image' }> }) {
  const url = useSignal('')
  useEffect(() => {
    const created = URL.createObjectURL(new Blob([content.bytes], { type: content.type }))
    url.value = created
    return () => URL.revokeObjectURL(created)
  }, [content])
  if (url.value === '') return null
  return <img class="content" src={url} alt={showHidden(name)} />
}
