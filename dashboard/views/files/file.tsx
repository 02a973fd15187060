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
import { findLanguage } from '../../data/languages.ts'
import { quoteShell } from '../../data/quote-shell.ts'
import { formatBytes } from '../../data/sizes.ts'
import { type Draft, openText } from '../../data/text-edits.ts'
import { showHidden, showHiddenInOutput } from '../../data/visible-text.ts'
import { Icon } from '../../design/icon.tsx'
import { DownloadIcon, PencilIcon } from '../../design/icons.ts'
import { Skeleton } from '../../design/skeleton.tsx'
import { Commands } from '../command.tsx'
import { focusHeading } from '../focus-heading.ts'
import { Problem } from '../problem.tsx'
import { Breadcrumb } from './breadcrumb.tsx'
import type { Token } from './highlight.ts'
import { TextEditor } from './text-editor.tsx'

/** Characters. The colours of a longer text would stop the browser for longer than a moment. */
const MAX_HIGHLIGHTED = 200_000

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
          <Icon of={DownloadIcon} />
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
            <Icon of={PencilIcon} />
            Edit
          </button>
        )}
        {value !== null && <span>{formatBytes(value.size)}</span>}
        <Commands texts={[`box cp ${box.hostname}:${quoteShell(path)} .`]} />
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
    if (error === null) return <Skeleton label="Loading the file." rows={10} />
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
      <pre>
        <Code name={name} text={content.text} />
      </pre>
    </section>
  )
}

/** The text, with colours if there is a grammar for the name of the file. They come later than the text. */
function Code({ name, text }: { name: string; text: string }) {
  const tokens = useSignal<{ text: string; tokens: readonly Token[] } | null>(null)
  useEffect(() => {
    let isCurrent = true
    const language = findLanguage(name)
    if (language !== null && text.length <= MAX_HIGHLIGHTED)
      void import('./highlight.ts').then(({ highlight }) => {
        if (isCurrent) tokens.value = { text, tokens: highlight(language, text) }
      })
    return () => {
      isCurrent = false
    }
  }, [name, text])
  if (tokens.value?.text !== text) return <>{showHiddenInOutput(text)}</>
  return (
    <>
      {tokens.value.tokens.map((token, index) =>
        token.kind === null ? (
          showHiddenInOutput(token.text)
        ) : (
          <span key={index} class={`token-${token.kind}`}>
            {showHiddenInOutput(token.text)}
          </span>
        ),
      )}
    </>
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
