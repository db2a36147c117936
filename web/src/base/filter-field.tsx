/** Field for the words that filter a list; applied by Enter or on blur. */

import { type ReactNode, type RefObject, useEffect, useRef } from "react";

const MAX_LENGTH = 500;

interface Props {
  name: string; // accessible name
  placeholder: string;
  value: string; // the current filter
  onFilter: (words: string, isBlur: boolean) => void;
  inputRef?: RefObject<HTMLInputElement | null>;
}

export function FilterField({ name, placeholder, value, onFilter, inputRef }: Props): ReactNode {
  const ownRef = useRef<HTMLInputElement>(null);
  const input = inputRef ?? ownRef;
  useEffect(() => {
    if (input.current) input.current.value = value; // same element, so that it keeps the focus
  }, [input, value]);
  const apply = (isBlur: boolean): void => {
    const words = input.current?.value.trim() ?? "";
    if (words !== value) onFilter(words, isBlur);
  };
  return (
    <input
      ref={input}
      type="search"
      className="words"
      placeholder={placeholder}
      aria-label={name}
      defaultValue={value}
      maxLength={MAX_LENGTH}
      onKeyDown={(event) => {
        if (event.key === "Enter") apply(false);
      }}
      onBlur={() => apply(true)}
    />
  );
}
