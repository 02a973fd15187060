// A modal dialog that asks before an action.
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import { useModal } from './use-modal.ts'

export type QuestionProps = {
  title: string
  children?: ComponentChildren
  /** Absent: there is nothing to accept. */
  label?: string
  /** The action opens this address, in another tab without access to this one. */
  href?: string
  onAccept(): void
  onClose(): void
}

export function Question({ title, children, label, href, onAccept, onClose }: QuestionProps) {
  const id = useId()
  const dialog = useModal(onClose)
  return (
    <dialog ref={dialog} aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
      <p class="buttons">
        {label !== undefined &&
          (href === undefined ? (
            <button type="button" class="primary" onClick={onAccept}>
              {label}
            </button>
          ) : (
            <a href={href} target="_blank" rel="noopener noreferrer" onClick={onAccept}>
              {label}
            </a>
          ))}
        <button type="button" onClick={() => dialog.current?.close()}>
          Cancel
        </button>
      </p>
    </dialog>
  )
}
