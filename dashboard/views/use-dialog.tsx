// The dialog of a page: at most one is open. It closes when its request has succeeded.

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { BoxwoodError } from '../../client/http/errors.ts'
import { toBoxwoodError } from '../api/errors.ts'
import { AdmissionDialog, type ToAdmission } from './admission-dialog.tsx'
import { FormDialog, type FormDialogProps } from './form-dialog.tsx'
import { Problem } from './problem.tsx'

export type DialogProps = Omit<FormDialogProps, 'onClose'> & {
  /** Of a dialog that creates or resizes a box. */
  toAdmission?: ToAdmission
}

export function useDialog() {
  /** Each dialog has a key: its fields and its idempotency key are not those of the previous one. */
  const current = useSignal<(DialogProps & { key: number }) | null>(null)
  const error = useSignal<BoxwoodError | null>(null)
  const attempts = useRef(0)
  useEffect(
    () => () => {
      attempts.current += 1
    },
    [],
  )
  const shown = current.value

  function open(props: DialogProps): void {
    attempts.current += 1
    error.value = null
    current.value = { ...props, key: attempts.current }
  }

  /** Opens the dialog when what it needs is loaded, unless the user has opened another one since, or has left the page. */
  async function load(create: () => Promise<DialogProps>): Promise<void> {
    attempts.current += 1
    const own = attempts.current
    error.value = null
    try {
      const props = await create()
      if (own === attempts.current) open(props)
    } catch (reason) {
      if (own === attempts.current) error.value = toBoxwoodError(reason)
    }
  }

  const props = shown && {
    ...shown,
    onClose() {
      // The request may have opened the next dialog.
      if (current.value === shown) current.value = null
    },
  }
  return {
    open,
    load,
    /** Why the last dialog could not be opened. */
    problem: <Problem error={error.value} />,
    view:
      props &&
      (props.toAdmission ? (
        <AdmissionDialog {...props} toAdmission={props.toAdmission} />
      ) : (
        <FormDialog {...props} />
      )),
  }
}
