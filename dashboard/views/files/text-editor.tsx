// Edits a text file. What was typed stays until it is saved or discarded, also while another page is shown.

import { useSignal } from '@preact/signals'
import { useEffect, useId, useRef } from 'preact/hooks'
import type { Box } from '../../../shared/api/boxes.ts'
import type { FileEntry } from '../../../shared/api/files.ts'
import { getBoxFiles } from '../../data/box-files.ts'
import { type Draft, saveText } from '../../data/text-edits.ts'
import { showHidden } from '../../data/visible-text.ts'
import { Problem } from '../problem.tsx'
import { useAction } from '../use-action.ts'

export function TextEditor({ box, draft, onClose }: { box: Box; draft: Draft; onClose(): void }) {
  const { files, getDraft, setDraft } = getBoxFiles(box.id)
  const id = useId()
  const area = useRef<HTMLTextAreaElement>(null)
  const current = useSignal(draft)
  const message = useSignal('')
  /** Undefined: no other program has changed the file. */
  const conflict = useSignal<FileEntry | null | undefined>(undefined)
  const { error, run } = useAction()
  const isChanged = useSignal(getDraft(draft.origin.path) !== null)
  const { path } = draft.origin
  useEffect(() => area.current?.focus(), [])

  const save = (overwrite: boolean) =>
    run(async () => {
      message.value = ''
      const saved = current.value
      const result = await saveText(files, saved, { overwrite })
      conflict.value = result.isSaved ? undefined : result.current
      if (!result.isSaved) return
      // The text may have been changed during the request.
      const isCurrent = current.value.text === saved.text
      current.value = { ...current.value, origin: result.origin }
      setDraft(path, isCurrent ? null : current.value)
      isChanged.value = !isCurrent
      message.value = 'Saved.'
      area.current?.focus()
    })

  return (
    <form
      class="editor"
      onSubmit={(event) => {
        event.preventDefault()
        void save(false)
      }}
    >
      <label for={id}>Text of {showHidden(path)}</label>
      <textarea
        id={id}
        ref={area}
        defaultValue={draft.text}
        spellcheck={false}
        onKeyDown={(event) => {
          if (event.key !== 's' || !(event.ctrlKey || event.metaKey)) return
          event.preventDefault()
          void save(false)
        }}
        onInput={({ currentTarget }) => {
          current.value = { ...current.value, text: currentTarget.value }
          message.value = ''
          setDraft(path, current.value)
          isChanged.value = true
        }}
      />
      <p class="buttons">
        <button type="submit" class="primary">
          Save
        </button>
        <button
          type="button"
          onClick={() => {
            setDraft(path, null)
            onClose()
          }}
        >
          {isChanged.value ? 'Discard the changes' : 'Close'}
        </button>
        <small>Ctrl-S saves</small>
        <span role="status">{message}</span>
      </p>
      <div role="alert">
        {conflict.value !== undefined && (
          <p class="problem">
            {conflict.value === null
              ? 'Another program has removed the file.'
              : `Another program has changed the file${conflict.value.mtime === null ? '' : ` at ${conflict.value.mtime}`}.`}{' '}
            Your text is not saved.{' '}
            <button type="button" onClick={() => void save(true)}>
              {conflict.value === null ? 'Create it again' : 'Replace it with my text'}
            </button>
          </p>
        )}
      </div>
      <Problem error={error.value} />
    </form>
  )
}
