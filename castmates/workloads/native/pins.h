/* Pins: they keep a compiler from making other instructions of a kernel than its name promises.

   A pin is an empty assembler statement that may have changed a value. Where it stands the compiler must have this one
   value in a register of this kind, and knows nothing about it afterwards; pins stay in the order in which they are
   written. So values that are pinned in turn cannot become lanes of one vector, addresses cannot become a gather, and a
   loop of pinned stores cannot become a call of memcpy or memset. A pin takes no instruction. */
#ifndef CASTMATES_PINS_H
#define CASTMATES_PINS_H

/* A whole number or an address, in a general register. */
#define CM_PIN(value) __asm__ volatile("" : "+r"(value))

/* A step of a chain, pinned before and after: it cannot wait for another chain's, to be done in the same vector. */
#define CM_STEP(value, next) \
    do {                     \
        CM_PIN(value);       \
        (value) = (next);    \
        CM_PIN(value);       \
    } while (0)

/* A floating-point number or a vector of them. */
#if defined(__x86_64__)
#define CM_PIN_REAL(value) __asm__ volatile("" : "+x"(value))
#elif defined(__aarch64__)
#define CM_PIN_REAL(value) __asm__ volatile("" : "+w"(value))
#else
#define CM_PIN_REAL(value) ((void)0) /* its registers have another letter, or there are none */
#endif

/* One way of a branch. Each has another text, so that two ways cannot be made one; and since it must not be taken
   unless it is its turn, there has to be a jump, and no conditional move. */
#define CM_WAY(name) __asm__ volatile("/* way: " name " */")

/* A function that has no vector registers at all, where compilers can promise that (clang cannot on Arm). What it
   inlines must be marked as well. */
#if defined(__x86_64__) || (defined(__aarch64__) && !defined(__clang__))
#define CM_SCALAR __attribute__((target("general-regs-only")))
#else
#define CM_SCALAR
#endif

#endif
